import type { Finding, FindingStatus } from '../doctor/check.ts';
import { examine } from '../doctor/examine.ts';
import { plural } from '../domain/wording.ts';
import { defineCommand } from './define-command.ts';
import { exitCodes } from './errors.ts';
import { readSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './terminal.ts';

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'check PostgreSQL, Redis, storage and settings, and say what to do',
  description:
    'Checks PostgreSQL (version, rights, settings, clock, migrations), Redis, storage, disks, mail server, inbox, schedules\n' +
    'and settings, and says of each what it found and what to do. Starts no database, applies no migration, sends no\n' +
    'message; writes one small file to the storage, and removes it.',
  json: 'print the findings as JSON',
  details: `Exit code: 0 nothing failed, though there may be warnings; 1 something failed;
2 a setting is wrong.`,
  examples: [
    'sluice doctor',
    'DATABASE_URL=postgres://… REDIS_URL=redis://… sluice doctor',
    `sluice doctor --json | jq '.[] | select(.status != "ok")'`,
  ],
  run: async ({ cli, command, terminal, json }) => {
    const findings = await examine(readSettings(cli, command).config, cli.processEnv);
    if (json) terminal.json(findings);
    else printFindings(terminal, findings);
    const isBad = findings.some(({ status }) => status === 'failed');
    process.exitCode = isBad ? exitCodes.failed : exitCodes.ok;
  },
});

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
  terminal.print(`${count('ok')} ok, ${plural(count('warning'), 'warning')}, ${count('failed')} failed`);
}
