/** `sluice inspect`: what a file holds, and what would become of it. */
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { applyMapping, type Mapped } from '../domain/column-map.ts';
import { READ_BYTES } from '../domain/limits.ts';
import type { Preset } from '../domain/load.ts';
import { formatBytes, formatCount } from '../domain/wording.ts';
import type { FileStore } from '../files/file-store.ts';
import { createFileSystemStore } from '../files/file-system.ts';
import type { InspectedColumn } from '../load/inspect/describe-columns.ts';
import { type Inspection, inspectFile, look } from '../load/inspect/inspect-file.ts';
import { renderInspection } from '../load/inspect/render-inspection.ts';
import { localLimits } from '../load/receive/receive.ts';
import { findOffered, inspectAndOffer, type OfferedInspection } from '../load/saved-mappings.ts';
import { createDatabase } from '../postgres/database.ts';
import { createWatchPool } from '../postgres/pool.ts';
import { isMissingTable } from '../postgres/sqlstate.ts';
import { findEnvironment } from '../postgres/stores/environments.ts';
import { findDatabaseUrl } from '../provide-database.ts';
import { defineCommand, type Invocation } from './define-command.ts';
import { exitCodes, explainError, UsageError } from './errors.ts';
import { columnsOf, printable, printTable } from './format.ts';
import { findInputs, type Input } from './import-file.ts';
import { required } from './options.ts';
import { describeReading } from './print-job.ts';
import { withEnvironment } from './session.ts';
import { readSettings } from './settings.ts';
import {
  fileFlags,
  mappingFlag,
  readMappingFlag,
  readSourceFlags,
  requireSavedMapping,
} from './source-flags.ts';
import type { Terminal } from './terminal.ts';

export const inspect = defineCommand({
  name: 'inspect',
  summary: 'what a file holds, and what would become of it',
  description:
    'Looks at the beginning of a file and loads nothing: how it is written, what its columns hold and would become,\n' +
    'which records would be refused, and the first records as they would be stored. Takes the options of `import`.',
  argument: required('<file>', 'a file, or - for standard input'),
  options: { ...fileFlags, mapping: mappingFlag },
  environment: 'environment whose saved mappings are used',
  json: 'print what POST /v1/imports/inspect answers',
  details: `Exit code: 0 the file can be loaded with these options; 2 it cannot; the
reason and possible remedies are printed.`,
  examples: [
    'sluice inspect users.csv',
    'sluice inspect kunden.csv --map "Kundennummer=user_id"',
    'sluice inspect kunden.csv --mapping kunden',
    'sluice inspect events.ndjson.gz --json | jq .columns',
  ],
  run: async (call) => {
    const { cli, command, argument, flags, terminal, json } = call;
    const [input, ...others] = await findInputs([argument]);
    if (input === undefined || others.length > 0) throw new UsageError('Name one file.');
    const { config } = readSettings(cli, command);
    const { entity = 'auto', map, preset = null, format = null } = flags;
    const asked: Asked = { entity, map, preset, format, source: readSourceFlags(flags) };
    const name = readMappingFlag(flags);
    const inspected =
      name === null
        ? await offer(call, input, config, asked)
        : await withEnvironment(call, async ({ system, environmentId }) => {
            const saved = await requireSavedMapping(system.db, environmentId, name);
            const find = (names: readonly string[]) => findOffered(system.db, environmentId, names);
            return inspectAndOffer(looker(input, config), applyMapping(asked, saved), name, find);
          });
    if (json) terminal.json(renderInspection(inspected));
    else printInspection(terminal, input, inspected, flags.map);
    process.exitCode = inspected.found.problem === null ? exitCodes.ok : exitCodes.usage;
  },
});

interface Asked extends Mapped {
  readonly preset: Preset | null;
}

function looker(input: Input, config: Config) {
  return (asked: Asked, mapSays: string) => lookAt(input, config, asked, mapSays);
}

/** Looks at the beginning of a file. */
export function lookAt(
  input: Input,
  config: Config,
  { format, source, map, ...asked }: Asked,
  mapSays?: string,
): Promise<Inspection> {
  return inWorkFolder(async (files) => {
    const hints = { format: format ?? undefined, map, filename: input.path ?? undefined, source };
    const bytes =
      input.path === null ? process.stdin : createReadStream(input.path, { highWaterMark: READ_BYTES });
    const { signal } = new AbortController();
    const options = { ...asked, map, ...(mapSays !== undefined && { mapSays }) };
    try {
      return await inspectFile(files, bytes, hints, options, localLimits(config), signal, look);
    } finally {
      bytes.destroy();
    }
  });
}

/**
 * With the saved mappings for files with this header, if a database runs; none is started for it. Standard input cannot be looked at
 * twice: for it nothing is offered.
 */
async function offer(
  { env, terminal }: Pick<Invocation, 'env' | 'terminal'>,
  input: Input,
  config: Config,
  asked: Asked,
): Promise<OfferedInspection<Inspection>> {
  const url = input.path === null ? undefined : await findDatabaseUrl(config);
  if (url === undefined) return inspectAndOffer(looker(input, config), asked, null, async () => []);
  const pool = createWatchPool(url, 'inspect');
  pool.on('error', () => undefined);
  const db = createDatabase(pool);
  const find = async (names: readonly string[]) => {
    try {
      const environment = await findEnvironment(db, env);
      return environment === null ? [] : await findOffered(db, environment.environmentId, names);
    } catch (error) {
      if (!isMissingTable(error)) {
        terminal.inform(`Saved mappings were not looked for: ${explainError(error).message}`);
      }
      return [];
    }
  };
  try {
    return await inspectAndOffer(looker(input, config), asked, null, find);
  } finally {
    await pool.end();
  }
}

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
  { found, saved, mapping }: OfferedInspection<Inspection>,
  given: Inspection['map'],
): void {
  const { readAs, records, isWhole, entity, columns, map, preset, problem, refused, rows } = found;
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
  if (saved.length > 0) line('mappings', `saved for this header: ${saved.join(', ')}`);
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
  if (problem !== null) terminal.inform(`sluice: ${explainError(problem).message}`);
  const isOffered = mapping !== null && saved[0] === mapping && Object.keys(given).length === 0;
  if (isOffered) terminal.inform(`Shown is what --mapping ${mapping} comes to.`);
  if (problem === null || isOffered) return;
  const proposed = Object.entries(map).filter(([name]) => !Object.hasOwn(given, name));
  const flags = [
    ...proposed.map(([name, ours]) => `--map ${JSON.stringify(`${name}=${ours}`)}`),
    ...(preset === null ? [] : [`--preset ${preset}`]),
  ];
  if (flags.length === 0) return;
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
