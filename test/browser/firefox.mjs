// Drives a Firefox by WebDriver BiDi, which it speaks itself. Arguments: the address of its BiDi, and the
// steps in JSON: each opens a link, signs in or presses a button, and waits for the title of a page.
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
await call("session.new", { capabilities: {} });
const { context } = (await call("browsingContext.getTree")).contexts[0];

async function run(expression) {
  const target = { context };
  const out = await call("script.evaluate", { expression, target, awaitPromise: false }).catch(() => ({}));
  return out.result?.value; // none between two pages
}
// until polls: a page that is left answers no promise. The Go test bounds the time between two lines of output.
async function until(expression) {
  while (!(await run(expression))) await new Promise((again) => setTimeout(again, 50));
  console.log(expression);
}

for (const step of JSON.parse(steps)) {
  if (step.Forget) await call("storage.deleteCookies");
  await call("browsingContext.navigate", { context, url: step.Link, wait: "complete" });
  console.log("opened", step.Link);
  if (step.Username) {
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
