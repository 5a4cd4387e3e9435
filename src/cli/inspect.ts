/** `sluice inspect`: what a file holds, and what would become of it. */
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { READ_BYTES } from '../domain/limits.ts';
import type { FileStore } from '../files/file-store.ts';
import { createFileSystemStore } from '../files/file-system.ts';
import type { InspectedColumn } from '../load/inspect/describe-columns.ts';
import { type Inspection, inspectFile } from '../load/inspect/inspect-file.ts';
import { renderInspection } from '../load/inspect/render-inspection.ts';
import { localLimits } from '../load/receive/receive.ts';
import { defineCommand } from './define-command.ts';
import { exitCodes, explainError, UsageError } from './errors.ts';
import { columnsOf, formatBytes, formatCount, printable, printTable } from './format.ts';
import { findInputs, type Input } from './import-file.ts';
import { required } from './options.ts';
import { describeReading } from './print-job.ts';
import { readSettings } from './settings.ts';
import { fileFlags, readSourceFlags } from './source-flags.ts';
import type { Terminal } from './terminal.ts';

export const inspect = defineCommand({
  name: 'inspect',
  summary: 'what a file holds, and what would become of it',
  description:
    'Looks at the beginning of a file and loads nothing: how it is written, what its columns hold and would become,\n' +
    'which records would be refused, and the first records as they would be stored. Takes the options of `import`.',
  argument: required('<file>', 'a file, or - for standard input'),
  options: fileFlags,
  json: 'print what POST /v1/imports/inspect answers',
  details: `Exit code: 0 the file can be loaded with these options; 2 it cannot: why, and
what may help, is said.`,
  examples: [
    'sluice inspect users.csv',
    'sluice inspect kunden.csv --map "Kundennummer=user_id"',
    'sluice inspect events.ndjson.gz --json | jq .columns',
  ],
  run: async ({ cli, command, argument, flags, terminal, json }) => {
    const [input, ...others] = await findInputs([argument]);
    if (input === undefined || others.length > 0) throw new UsageError('Name one file.');
    const { config } = readSettings(cli, command);
    const found = await inWorkFolder(async (files) => {
      const { entity = 'auto', map, preset = null, format } = flags;
      const hints = { format, map, filename: input.path ?? undefined, source: readSourceFlags(flags) };
      const source =
        input.path === null ? process.stdin : createReadStream(input.path, { highWaterMark: READ_BYTES });
      const { signal } = new AbortController();
      try {
        return await inspectFile(files, source, hints, { entity, map, preset }, localLimits(config), signal);
      } finally {
        source.destroy();
      }
    });
    if (json) terminal.json(renderInspection(found));
    else printInspection(terminal, input, found, flags.map);
    process.exitCode = found.problem === null ? exitCodes.ok : exitCodes.usage;
  },
});

/** No database and no data directory are needed to look at a file. */
async function inWorkFolder<T>(work: (files: FileStore) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-inspect-'));
  try {
    return await work(createFileSystemStore(folder));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function printInspection(
  terminal: Terminal,
  input: Input,
  { readAs, records, isWhole, entity, columns, map, problem, refused, rows }: Inspection,
  given: Inspection['map'],
): void {
  const line = (title: string, text: string): void => terminal.print(`${title.padEnd(10)}  ${text}`);
  const size = input.bytes === null ? '' : `, ${formatBytes(input.bytes)}`;
  line('file', `${printable(input.name, 80)}${size}`);
  for (const text of describeReading({ readAs })) line('read as', text);
  if (records > 0) {
    const share = isWhole ? 'all' : 'the first';
    line(
      'records',
      `${share} ${formatCount(records)} were looked at, ${formatCount(refused.count)} of them would be refused`,
    );
    if (entity !== null && entity !== 'auto') line('what', entity);
  }
  terminal.print('');
  printTable(
    terminal,
    columnsOf('column', 'becomes', 'type', '>filled', '>distinct', 'samples', 'because'),
    columns.map(columnCells),
  );
  if (rows.length > 0) {
    terminal.print('');
    terminal.print('As they would be stored:');
    const cells = rows.map(({ row, kind, fields, metadata }) => [
      String(row),
      kind,
      printable(
        Object.values(fields)
          .filter((field) => field !== null)
          .join(' '),
        60,
      ),
      printable(JSON.stringify(metadata), 100),
    ]);
    printTable(terminal, columnsOf('>record', 'kind', 'ids', 'metadata'), cells);
  }
  if (refused.count > 0) {
    terminal.print('');
    terminal.print('Refused:');
    const cells = refused.samples.map(({ line: at, code, message, raw }) => [
      String(at),
      code,
      printable(message, 80),
      printable(Buffer.from(raw).toString('utf8').trimEnd(), 60),
    ]);
    printTable(terminal, columnsOf('>line', 'code', 'reason', 'record'), cells);
  }
  if (problem === null) return;
  terminal.inform(`sluice: ${explainError(problem).message}`);
  const proposed = Object.entries(map).filter(([name]) => !Object.hasOwn(given, name));
  if (proposed.length === 0) return;
  const flags = proposed.map(([name, ours]) => `--map ${JSON.stringify(`${name}=${ours}`)}`);
  terminal.inform(`Shown is what ${flags.join(' ')} would come to.`);
}

function columnCells({ name, becomes, type, filled, distinct, samples, reason }: InspectedColumn): string[] {
  const shown = samples.map((sample) =>
    printable(typeof sample === 'string' ? sample : JSON.stringify(sample), 20),
  );
  return [
    printable(name, 32),
    becomes === null ? '–' : printable(becomes, 40),
    type ?? '–',
    formatCount(filled),
    formatCount(distinct),
    shown.join(', '),
    reason,
  ];
}
