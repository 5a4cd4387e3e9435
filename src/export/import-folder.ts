/** Reads the folder of `sluice export --everything` for `sluice import FOLDER`. */

import { createHash } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Fault } from '../base/errors.ts';
import { formatCount } from '../base/wording.ts';
import { CommandFailed, exitCodes, UsageError } from '../cli/errors.ts';
import { readValidFile } from '../cli/input-files.ts';
import type { Terminal } from '../cli/terminal.ts';
import type { System } from '../context.ts';
import { exportFormatFacts } from '../domain/export.ts';
import { countStoredEvents } from '../ingest/event-store.ts';
import { type LoadedBack, restoreTimes } from '../ingest/profile-store.ts';
import {
  type Imported,
  type ImportOptions,
  type ImportSession,
  importFile,
  printImported,
  renderImported,
} from '../load/import-file.ts';
import { applyDefinitions, changesByList, describeApplied } from '../lookups/apply-definitions.ts';
import { readDefinitionsFile, writeDefinitionsFile } from '../lookups/definitions.ts';
import { readDefinitions, withoutIds } from '../lookups/store.ts';
import { type ActContext, act } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import {
  formatOf,
  type Manifest,
  manifestName,
  readManifest,
  type SetupFile,
  setupName,
  verifyExport,
} from './manifest.ts';
import { formatWriters } from './write/formats.ts';
import { rowBlocks } from './write/rows.ts';

/**
 * Returns the folder to import. Returns `null` unless the only argument is a folder with an export.
 */
export async function findExportFolder(names: readonly string[]): Promise<string | null> {
  const [name] = names;
  if (name === undefined || names.length > 1 || name === '-') return null;
  const stats = await stat(join(name, manifestName)).catch(() => null);
  return stats?.isFile() === true ? name : null;
}

/**
 * The order in which files are loaded. Users refer to companies, and events refer to users and
 * companies. A stream contains all of these.
 */
const order = ['companies', 'users', 'events', 'stream'] as const;
type Dataset = (typeof order)[number];

interface RestoredFile extends LoadedBack {
  readonly dataset: Dataset;
}

/** Repeating an interrupted import continues it: files that are already loaded are skipped. */
export async function importFolder(
  terminal: Terminal,
  session: ImportSession,
  folder: string,
  options: ImportOptions,
): Promise<{ readonly exitCode: number; readonly json: object }> {
  const manifest = await requireWhole(folder);
  const loads: Imported[] = [];
  const restored: RestoredFile[] = [];
  for (const file of sortedFiles(manifest)) {
    const { imported, restored: restoredFile } = await loadFile(terminal, session, folder, file, options);
    loads.push(imported);
    if (!options.json) printImported(terminal, session.system.optionTable, imported);
    if (restoredFile === null) break;
    restored.push(restoredFile);
  }
  const { system, environmentId, baseUrl } = session;
  const failed = loads.find(({ exitCode }) => exitCode !== exitCodes.ok);
  const setup =
    failed === undefined ? await loadSetup(system, environmentId, folder, manifest.setup ?? []) : null;
  if (!options.json && setup !== null) printBack(terminal, restored, setup);
  const exitCode = failed?.exitCode ?? (restored.every(isWhole) ? exitCodes.ok : exitCodes.failed);
  const json = { loads: loads.map((each) => renderImported(each, baseUrl)), files: restored, setup };
  return { exitCode, json };
}

/**
 * Reads the manifest of the folder and compares the files with it.
 * @throws CommandFailed if the folder does not match its manifest
 */
async function requireWhole(folder: string): Promise<Manifest> {
  const { differences } = await verifyExport(folder);
  const [first] = differences;
  if (first === undefined) return readManifest(folder);
  throw new CommandFailed(
    `${folder} is not as it was written: ${first.filename} ${first.problem}. Nothing was loaded.`,
  );
}

type ListedFile = Manifest['files'][number];

interface DataFile extends ListedFile {
  readonly dataset: Dataset;
}

/** Returns the files in loading order. @throws UsageError for a format without types */
function sortedFiles({ files }: Manifest): readonly DataFile[] {
  const lossy = files.map((file) => exportFormatFacts[formatOf(file)]).find((facts) => !facts.isLossless);
  if (lossy !== undefined) {
    const { label } = lossy;
    throw new UsageError(
      `A ${label} has no types, so a folder of ${label} cannot be imported as a whole: name its files.`,
    );
  }
  return order.flatMap((dataset) =>
    files.filter((file): file is DataFile => file.dataset === dataset && file.rows > 0),
  );
}

/**
 * Loads a file. Skips a file that an earlier call has loaded, unless some of its rows have been
 * deleted since. `restored` is `null` if the load failed.
 */
async function loadFile(
  terminal: Terminal,
  session: ImportSession,
  folder: string,
  file: DataFile,
  options: ImportOptions,
): Promise<{ readonly imported: Imported; readonly restored: RestoredFile | null }> {
  const startedAt = new Date();
  const path = join(folder, file.filename);
  const input = { path, name: basename(path), bytes: (await stat(path)).size };
  const { dataset } = file;
  const entity = dataset === 'users' || dataset === 'companies' ? dataset : 'auto';
  for (const ifDuplicate of ['skip', 'load'] as const) {
    const imported = await importFile(terminal, session, input, { ...options, entity, ifDuplicate });
    if (imported.exitCode !== exitCodes.ok || imported.load === null) return { imported, restored: null };
    const result = await restoreFile(session, path, file, imported.load.jobId);
    const wasThere = imported.load.acceptedAt < startedAt;
    if (isWhole(result) || !wasThere || ifDuplicate === 'load') return { imported, restored: result };
  }
  throw new Fault('the second time is the last');
}

/**
 * Restores the times at which profiles were first and last seen, except from a stream, which lacks
 * these times. Counts the stored rows that equal rows of the file.
 */
async function restoreFile(
  { system, environmentId }: ImportSession,
  path: string,
  file: DataFile,
  jobId: string,
): Promise<RestoredFile> {
  const { dataset } = file;
  const sum = { rows: 0, same: 0, dated: 0 };
  const datasets = dataset === 'stream' ? (['companies', 'users', 'events'] as const) : [dataset];
  for await (const rows of listsOf(path, file)) {
    for (const part of datasets) {
      const counts =
        part === 'events'
          ? await countStoredEvents(system.db, environmentId, rows)
          : await restoreTimes(system.db, environmentId, part, jobId, rows);
      sum.rows += counts.rows;
      sum.same += counts.same;
      sum.dated += counts.dated;
    }
  }
  return { dataset, ...sum };
}

async function* listsOf(path: string, file: ListedFile): AsyncGenerator<string> {
  const { readBack, text } = formatWriters[formatOf(file)];
  for await (const { bytes } of rowBlocks(readBack(path), text)) {
    // Only ends of rows are line breaks, because JSON escapes line breaks within values.
    yield `[${bytes.toString('utf8').trimEnd().replaceAll('\n', ',')}]`;
  }
}

function isWhole({ rows, same }: LoadedBack): boolean {
  return rows === same;
}

function printBack(terminal: Terminal, restored: readonly RestoredFile[], setup: SetupLoaded): void {
  for (const dataset of order) {
    const files = restored.filter((each) => each.dataset === dataset);
    const sum = (key: keyof LoadedBack): number => files.reduce((total, each) => total + each[key], 0);
    if (dataset === 'stream' && files.length === 0) continue;
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
}

type DefinitionLists = Pick<System, 'definitionLists'>;

async function portableLists({ definitionLists }: DefinitionLists) {
  return (await definitionLists()).filter(({ isLocal }) => isLocal !== true);
}

export async function writeSetup(
  system: DefinitionLists & { readonly db: Database },
  environmentId: number,
  folder: string,
): Promise<void> {
  const lists = await portableLists(system);
  const definitions = withoutIds(await readDefinitions(system.db, environmentId, lists));
  const bytes = Buffer.from(writeDefinitionsFile(definitions, 'yaml'));
  await writeFile(join(folder, setupName), bytes, { flag: 'wx', flush: true });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const path = join(folder, manifestName);
  const manifest = JSON.parse(await readFile(path, 'utf8')) as Manifest;
  const whole: Manifest = { ...manifest, setup: [{ filename: setupName, bytes: bytes.length, sha256 }] };
  await writeFile(path, `${JSON.stringify(whole, null, 2)}\n`, { flush: true });
}

export interface SetupLoaded {
  /** `left`: the environment has different definitions, so none were added. */
  readonly definitions: 'applied' | 'unchanged' | 'left' | 'absent';
}

/**
 * Adds the definitions of the export that the environment lacks. Adds none if the environment has
 * different definitions.
 */
export async function loadSetup(
  context: ActContext & DefinitionLists,
  environmentId: number,
  folder: string,
  setup: readonly SetupFile[],
): Promise<SetupLoaded> {
  if (setup.length === 0) return { definitions: 'absent' };
  const { db } = context;
  const lists = await portableLists(context);
  const items = await readValidFile(join(folder, setupName), (bytes) => readDefinitionsFile(bytes, lists));
  const options = { dryRun: false, force: false, lists };
  const dryRun = await applyDefinitions(db, environmentId, items, { ...options, dryRun: true });
  const all = changesByList(dryRun.changes).map(([, changes]) => changes);
  if (all.some(({ changed, removed }) => changed.length + removed.length > 0)) return { definitions: 'left' };
  if (all.every(({ added }) => added.length === 0)) return { definitions: 'unchanged' };
  await act(
    context,
    (transaction) => applyDefinitions(transaction, environmentId, items, options),
    (result) => describeApplied(environmentId, result, options),
  );
  return { definitions: 'applied' };
}
