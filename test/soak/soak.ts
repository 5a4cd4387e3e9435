/**
 * npm run soak [-- --help]
 *
 * Uses a whole service as many callers would, while its processes and databases are killed, paused and emptied, and then
 * checks that everything that was acknowledged is there exactly once, and that nothing else is left.
 */
import { rmSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Journal } from './journal.ts';
import { type Options, readOptions, usage } from './options.ts';
import { renderReport } from './report.ts';
import { runSoak } from './run.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function askedFor(): Options {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options !== null) return options;
    print(usage);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}\n`);
    process.exit(2);
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const options = askedFor();
const folder = await mkdtemp(join(tmpdir(), 'sluice-soak-'));
print(
  `seed ${options.seed}, queue on ${options.queue}, ${options.minutes} minutes; data and logs in ${folder}`,
);
const outcome = await runSoak(folder, options, new Journal(join(folder, 'journal.log')), print);
const isKept = options.keep || !outcome.passed;
if (!isKept) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
const report = { ...outcome, folder: isKept ? folder : null };
print(renderReport(report));
if (options.json !== null) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
process.exitCode = report.passed ? 0 : 1;
