// The colours that a reader has chosen, before anything is drawn. Without a choice they are those of the system.
(() => {
  let choice = null;
  try { choice = localStorage.getItem("colours"); } catch { /* storage may be off */ }
  if (choice === "light" || choice === "dark") document.documentElement.dataset.colours = choice;
  document.documentElement.classList.add("script");
})();
