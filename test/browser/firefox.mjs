// Drives Firefox over WebDriver BiDi. Arguments: the address of the BiDi server, and the steps in JSON.
// Each step opens a link, signs in or presses a button, and waits for the title of a page.
const [address, steps] = process.argv.slice(2);
const socket = new WebSocket(`${address}/session`);
await new Promise((open, fail) => Object.assign(socket, { onopen: open, onerror: fail }));
const waiting = new Map();
socket.onmessage = ({ data }) => {
  const answer = JSON.parse(data);
  waiting.get(answer.id)?.(answer);
};
let id = 0;
function call(method, params = {}) {
  return new Promise((resolve, reject) => {
    waiting.set(++id, (a) => (a.type === "error" ? reject(new Error(`${method}: ${a.message}`)) : resolve(a.result)));
    socket.send(JSON.stringify({ id, method, params }));
  });
}
// said prints what the script waited for. The Go test bounds the time between two lines.
const said = (...words) => console.log(...words);
said("connected");
await call("session.new", { capabilities: {} });
said("session");
// The first tab may still be loading: a navigation would compete with it.
const { context } = await call("browsingContext.create", { type: "tab" });
said("tab");

// run returns undefined if the page is left before it answers, which Firefox then may never do.
async function run(expression) {
  const answered = call("script.evaluate", { expression, target: { context }, awaitPromise: false });
  const late = new Promise((left) => setTimeout(left, 5000));
  return (await Promise.race([answered, late]).catch(() => undefined))?.result?.value;
}
async function until(expression) {
  while (!(await run(expression))) await new Promise((again) => setTimeout(again, 50));
  said(expression);
}

for (const step of JSON.parse(steps)) {
  if (step.Forget) await call("storage.deleteCookies");
  await call("browsingContext.navigate", { context, url: step.Link, wait: "none" });
  if (step.Username) {
    await until(`!!document.querySelector("[name=password]")`);
    await run(`{
      const field = (name) => document.querySelector("[name=" + name + "]");
      field("username").value = ${JSON.stringify(step.Username)};
      field("password").value = ${JSON.stringify(step.Password)};
      field("password").form.requestSubmit();
    }`);
  }
  if (step.Press) {
    const button = `document.querySelector("button[value=${step.Press}]:not([disabled])")`;
    await until(`!!${button}`);
    await run(`${button}.click()`);
  }
  await until(`document.readyState === "complete" && document.title === ${JSON.stringify(step.Title)}`);
}
await call("browser.close");
