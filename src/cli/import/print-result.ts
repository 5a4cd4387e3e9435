import { exitCodes } from '../exit-codes.ts';
import { formatCount } from '../format-numbers.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import type { Imported } from './import-file.ts';
import { summarise } from './summary.ts';

/** What a person reads at the end of one file. */
export function printResult(terminal: Terminal, { name, load, rejects, remark, exitCode }: Imported): void {
  if (load === null) {
    terminal.note(`sluice: ${name}: ${remark ?? ''}`);
    return;
  }
  const colour = exitCode === exitCodes.ok ? 'green' : exitCode === exitCodes.failed ? 'red' : 'yellow';
  const dry = load.dryRun ? ' (dry run: nothing was written)' : '';
  terminal.print(
    `${name}: ${terminal.style(colour, exitCode === exitCodes.interrupted ? 'stopped' : load.status)}${dry}  job ${load.jobId}`,
  );
  for (const line of summarise(load)) terminal.print(`  ${line}`);
  if (load.failure !== null) terminal.print(`  Failed: ${load.failure.message}`);
  if (rejects !== null) {
    terminal.print('');
    for (const { row, line, column, code, message } of rejects.first) {
      const where = column === null ? '' : `, ${printable(column, 40)}`;
      terminal.print(`  row ${row} (line ${line}${where}): ${printable(message, 160)} [${code}]`);
    }
    const more = rejects.count - rejects.first.length;
    if (more > 0) terminal.print(`  … and ${formatCount(more)} more`);
    if (rejects.path !== null)
      terminal.print(`  Refused records${load.dryRun ? '' : ', to mend and import again'}: ${rejects.path}`);
    else
      terminal.print(
        `  The refused records: sluice jobs rejects ${load.jobId}${rejects.problem === null ? '' : ` (${rejects.problem})`}`,
      );
  }
  if (remark !== null) for (const line of remark.split('\n')) terminal.print(`  ${line}`);
}
