/**
 * The file mapping.yaml in an inbox folder. It specifies how the other files in the folder are
 * loaded (docs/inbox.md).
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { MAX_OPERATOR_FILE_BYTES } from '../../base/limits.ts';
import { type OperatorFile, readOperatorFile } from '../../base/operator-file/read.ts';
import { choice, objectOf } from '../../base/operator-file/schema.ts';
import type { FileProblem } from '../../base/operator-file/source.ts';
import { entities } from '../../domain/entity.ts';
import type { FileOptions } from '../../domain/load.ts';
import { checkLoad, loadMembers, toFileOptions } from '../../domain/load-options.ts';
import type { OptionTable } from '../../domain/option-table.ts';
import { codeOf } from '../../files/disk.ts';
import { mappingErrorName, mappingName, type Warnings } from './context.ts';
import { type FileIdentity, type InboxFolder, isSameFile } from './files.ts';
import { type Moment, openPlain, StableFiles, writeWhole } from './folders.ts';

const mappingSchema = (table: OptionTable) =>
  objectOf('a mapping', 'How the files beside it are loaded.', {
    entity: Type.Optional(choice(entities, 'What the records are; default: each says so by its keys.')),
    ...loadMembers(table),
  });

type MappingReading =
  | { readonly options: FileOptions; readonly problems: readonly [] }
  | { readonly options: null; readonly problems: readonly FileProblem[] };

export function optionsWithoutMapping(table: OptionTable, folder: InboxFolder): FileOptions {
  return toFileOptions(table, { map: {}, if_duplicate: 'skip' }, folder === '' ? 'auto' : folder);
}

export function readMapping(table: OptionTable, bytes: Uint8Array, folder: InboxFolder): MappingReading {
  const { value, problems } = readOperatorFile(bytes, mappingFile(table, folder));
  if (value === null) return { options: null, problems };
  const entity = value.entity ?? (folder === '' ? 'auto' : folder);
  return { options: toFileOptions(table, value, entity), problems: [] };
}

function mappingFile(
  table: OptionTable,
  folder: InboxFolder,
): OperatorFile<ReturnType<typeof mappingSchema>> {
  return {
    schema: mappingSchema(table),
    emptyHint: 'remove it, or write what it is to say, such as `map:`',
    check(root) {
      checkLoad(table, root);
      const entity = root.at(['entity']);
      // The subfolder determines the entity.
      const isOther = entities.some((each) => each === entity.value && each !== folder);
      if (folder !== '' && isOther) entity.reportName(`is ${folder} in the folder ${folder}; leave it out`);
    },
  };
}

export class FolderMapping {
  readonly #table: OptionTable;
  readonly #folder: InboxFolder;
  readonly #stable: StableFiles;
  #lastGood: { readonly identity: FileIdentity; readonly reading: MappingReading } | null = null;
  /**
   * Text of the error file. `null` if there is no error file. `undefined` if it is not known
   * whether there is one.
   */
  #errorText: string | null | undefined;

  constructor(table: OptionTable, folder: InboxFolder, stableMs: number) {
    this.#table = table;
    this.#folder = folder;
    this.#stable = new StableFiles(stableMs);
  }

  /** Returns `null` if the files in the folder must wait. */
  async look(
    path: string,
    file: FileIdentity | null,
    now: Moment,
    warnings: Warnings,
  ): Promise<FileOptions | null> {
    if (file === null) {
      await this.#writeErrors(path, null, warnings);
      return optionsWithoutMapping(this.#table, this.#folder);
    }
    const seen = { ...file, name: mappingName, folder: this.#folder };
    if (this.#stable.look([seen], now).length === 0) return null;
    const { options, problems } = await this.#read(path, file);
    const lines = problems.map(({ line, column, message }) => `${mappingName}:${line}:${column} ${message}`);
    if (lines.length > 0) {
      warnings.warn(join(path, mappingName), `files wait until this is mended: ${lines.join('; ')}`);
    }
    await this.#writeErrors(path, lines.length === 0 ? null : `${lines.join('\n')}\n`, warnings);
    return options;
  }

  async #read(path: string, identity: FileIdentity): Promise<MappingReading> {
    if (this.#lastGood !== null && isSameFile(this.#lastGood.identity, identity))
      return this.#lastGood.reading;
    const reading = await read(this.#table, join(path, mappingName), this.#folder);
    this.#lastGood = reading.options === null ? null : { identity, reading };
    return reading;
  }

  async #writeErrors(path: string, text: string | null, warnings: Warnings): Promise<void> {
    if (text === this.#errorText) return;
    try {
      if (text === null) await rm(join(path, mappingErrorName), { force: true });
      else await writeWhole(path, mappingErrorName, [Buffer.from(text)]);
      this.#errorText = text;
    } catch (error) {
      warnings.warn(join(path, mappingErrorName), `cannot be written or removed (${codeOf(error)})`);
    }
  }
}

async function read(table: OptionTable, path: string, folder: InboxFolder): Promise<MappingReading> {
  try {
    const handle = await openPlain(path);
    try {
      const stats = await handle.stat();
      if (!stats.isFile() || stats.size > MAX_OPERATOR_FILE_BYTES)
        return unreadable('is no small regular file');
      return readMapping(table, await handle.readFile(), folder);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (codeOf(error) === 'ELOOP') return unreadable('is a symbolic link; put the file itself here');
    if (codeOf(error) === 'EACCES') return unreadable('may not be read by the user that sluice runs as');
    throw error;
  }
}

function unreadable(why: string): MappingReading {
  return { options: null, problems: [{ line: 1, column: 1, path: '', message: `the file ${why}` }] };
}
