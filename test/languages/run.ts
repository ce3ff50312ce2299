// Judges the tokens of standard input, one a line, and prints a line of JSON for each.
import { createInterface } from "node:readline";
import { verifier } from "./verify.ts";

const [, , issuer, audience, typ] = process.argv;
const verify = verifier(issuer, audience, typ);
for await (const token of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify({ claims: await verify(token) }));
  } catch (e) {
    console.log(JSON.stringify({ error: `${e.code ?? e.name}: ${e.message}` }));
  }
}
