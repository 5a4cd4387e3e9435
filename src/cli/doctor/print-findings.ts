import type { Finding, FindingStatus } from '../../doctor/check.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

const longest = 400;
const looks = { ok: 'green', warning: 'yellow', failed: 'red' } as const satisfies Record<
  FindingStatus,
  string
>;

/** A line for each, what to do below it, and how many of each kind at the end. */
export function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  for (const { check, status, found, advice } of findings) {
    const head = terminal.style(looks[status], status.padEnd(8));
    terminal.print(`${head} ${printable(check, longest)}: ${printable(found, longest)}`);
    if (advice !== null) terminal.print(`${' '.repeat(9)}→ ${printable(advice, longest)}`);
  }
  const count = (status: FindingStatus): number => findings.filter((each) => each.status === status).length;
  terminal.print('');
  terminal.print(`${count('ok')} ok, ${count('warning')} warnings, ${count('failed')} failed`);
}
