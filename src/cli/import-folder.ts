/** `sluice import FOLDER`: what `sluice export` wrote there comes back, with the times that files alone do not bring. */
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Fault } from '../domain/errors.ts';
import { formatCount, plural } from '../domain/wording.ts';
import {
  formatOf,
  type ListedExport,
  type ListedFile,
  readListedExport,
  verifyExport,
} from '../export/verify-export.ts';
import { formatWriters } from '../export/write/formats.ts';
import { manifestName } from '../export/write/manifest.ts';
import { rowBlocks } from '../export/write/row-blocks.ts';
import { countStoredEvents } from '../postgres/stores/events.ts';
import { type LoadedBack, restoreTimes } from '../postgres/stores/profiles.ts';
import { CommandFailed, exitCodes, UsageError } from './errors.ts';
import { loadSetup, type SetupLoaded } from './export-setup.ts';
import {
  type Imported,
  type ImportOptions,
  type ImportSession,
  importFile,
  printImported,
  renderImported,
} from './import-file.ts';
import type { Terminal } from './terminal.ts';

/** The folder, if that is all that is named, and an export is in it. */
export async function findExportFolder(names: readonly string[]): Promise<string | null> {
  const [name] = names;
  if (name === undefined || names.length > 1 || name === '-') return null;
  const found = await stat(join(name, manifestName)).catch(() => null);
  return found?.isFile() === true ? name : null;
}

/** Users are after the companies that they name; events, which say all themselves, come last. */
const order = ['companies', 'users', 'events'] as const;
type Dataset = (typeof order)[number];

interface FileBack extends LoadedBack {
  readonly dataset: Dataset;
}

export interface FolderImported {
  readonly exitCode: number;
  readonly json: object;
}

/** Files that were loaded before are not loaded again, so that a call that was ended goes on. */
export async function importFolder(
  terminal: Terminal,
  session: ImportSession,
  folder: string,
  options: ImportOptions,
): Promise<FolderImported> {
  const listed = await requireWhole(folder);
  const loads: Imported[] = [];
  const back: FileBack[] = [];
  for (const file of inOrder(listed)) {
    const { imported, found } = await loadBack(terminal, session, folder, file, options);
    loads.push(imported);
    if (!options.json) printImported(terminal, imported);
    if (found === null) break;
    back.push(found);
  }
  const { system, environmentId, baseUrl } = session;
  const failed = loads.find(({ exitCode }) => exitCode !== exitCodes.ok);
  const setup = failed === undefined ? await loadSetup(system.db, environmentId, folder, listed.setup) : null;
  if (!options.json && setup !== null) printBack(terminal, back, setup);
  const exitCode = failed?.exitCode ?? (back.every(isWhole) ? exitCodes.ok : exitCodes.failed);
  const json = { loads: loads.map((each) => renderImported(each, baseUrl)), files: back, setup };
  return { exitCode, json };
}

/** @throws CommandFailed if the folder does not hold what its manifest says. */
async function requireWhole(folder: string): Promise<ListedExport> {
  const { differences } = await verifyExport(folder);
  const [first] = differences;
  if (first === undefined) return readListedExport(folder);
  const name = first.filename ?? 'the export';
  throw new CommandFailed(
    `${folder} is not as it was written: ${name} ${first.problem}. Nothing was loaded.`,
  );
}

interface DataFile extends ListedFile {
  readonly dataset: Dataset;
}

/** @throws UsageError for an export that says less than what is stored. */
function inOrder({ files }: ListedExport): readonly DataFile[] {
  if (files.some(({ filename, dataset }) => dataset === 'stream' || /\.csv(\.gz)?$/.test(filename))) {
    throw new UsageError(
      'A CSV has no types, and a stream no ids of events: as a whole, only exports of NDJSON, Parquet and Avro come back. Name the files.',
    );
  }
  return order.flatMap((dataset) =>
    files.filter((file): file is DataFile => file.dataset === dataset && file.rows > 0),
  );
}

interface LoadedFile {
  readonly imported: Imported;
  /** Null: it was not loaded. */
  readonly found: FileBack | null;
}

/** Of a load that was there already, what is not as its file says, because it was deleted since, is loaded again. */
async function loadBack(
  terminal: Terminal,
  session: ImportSession,
  folder: string,
  file: DataFile,
  options: ImportOptions,
): Promise<LoadedFile> {
  const startedAt = new Date();
  for (const ifDuplicate of ['skip', 'load'] as const) {
    const imported = await importOne(terminal, session, join(folder, file.filename), file, {
      ...options,
      ifDuplicate,
    });
    if (imported.exitCode !== exitCodes.ok || imported.load === null) return { imported, found: null };
    const found = await bringBack(session, folder, file, imported.load.jobId);
    const wasThere = imported.load.acceptedAt < startedAt;
    if (isWhole(found) || !wasThere || ifDuplicate === 'load') return { imported, found };
  }
  throw new Fault('the second time is the last');
}

async function importOne(
  terminal: Terminal,
  session: ImportSession,
  path: string,
  { dataset }: DataFile,
  options: ImportOptions,
): Promise<Imported> {
  const { size } = await stat(path);
  const entity = dataset === 'events' ? 'auto' : dataset;
  const input = { path, name: basename(path), bytes: size };
  return importFile(terminal, session, input, { ...options, entity });
}

/** Times of profiles, and how many of the file's rows are stored as it says. */
async function bringBack(
  { system, environmentId }: ImportSession,
  folder: string,
  file: DataFile,
  jobId: string,
): Promise<FileBack> {
  const { dataset } = file;
  const sum = { rows: 0, same: 0, dated: 0 };
  for await (const rows of listsOf(join(folder, file.filename), file)) {
    const part =
      dataset === 'events'
        ? await countStoredEvents(system.db, environmentId, rows)
        : await restoreTimes(system.db, environmentId, dataset, jobId, rows);
    sum.rows += part.rows;
    sum.same += part.same;
    sum.dated += part.dated;
  }
  return { dataset, ...sum };
}

/** The rows of a file as JSON arrays, as many at a time as are read at once. */
async function* listsOf(path: string, file: ListedFile): AsyncGenerator<string> {
  const { readBack, text } = formatWriters[formatOf(file)];
  for await (const { bytes } of rowBlocks(readBack(path), text)) {
    // A line end within a value would be escaped.
    yield `[${bytes.toString('utf8').trimEnd().replaceAll('\n', ',')}]`;
  }
}

function isWhole({ rows, same }: LoadedBack): boolean {
  return rows === same;
}

function printBack(terminal: Terminal, back: readonly FileBack[], setup: SetupLoaded): void {
  for (const dataset of order) {
    const of = back.filter((each) => each.dataset === dataset);
    const sum = (key: keyof LoadedBack): number => of.reduce((total, each) => total + each[key], 0);
    if (sum('rows') === sum('same')) {
      terminal.print(`${dataset}: all ${formatCount(sum('rows'))} are stored as the files say`);
      continue;
    }
    terminal.print(
      `${dataset}: ${formatCount(sum('same'))} of ${formatCount(sum('rows'))} are stored as the files say; the others were refused, or met what was there already`,
    );
  }
  if (setup.definitions === 'applied') terminal.print('definitions: applied');
  if (setup.definitions === 'left') {
    terminal.print(
      'definitions: the environment has others, which were left; `sluice definitions apply` replaces them',
    );
  }
  if (setup.mappings > 0) terminal.print(`saved mappings: ${formatCount(setup.mappings)} added`);
  if (setup.subscriptions > 0) {
    terminal.inform(
      `subscriptions.json has ${plural(setup.subscriptions, 'subscription')}; none was made: \`sluice notifications add\``,
    );
  }
}
