import type { Finding, Verdict } from '../../doctor/finding.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

const longest = 400;
const looks = { ok: 'green', warning: 'yellow', failed: 'red' } as const satisfies Record<Verdict, string>;

/** A line for each, what to do below it, and how many of each kind at the end. */
export function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  for (const { check, verdict, found, advice } of findings) {
    const head = terminal.style(looks[verdict], verdict.padEnd(8));
    terminal.print(`${head} ${printable(check, longest)}: ${printable(found, longest)}`);
    if (advice !== null) terminal.print(`${' '.repeat(9)}→ ${printable(advice, longest)}`);
  }
  const count = (verdict: Verdict): number => findings.filter((each) => each.verdict === verdict).length;
  terminal.print('');
  terminal.print(`${count('ok')} ok, ${count('warning')} warnings, ${count('failed')} failed`);
}
