{
  const { to } = document.currentScript.dataset;
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) to ? location.replace(to) : location.reload();
  });
}
