import { createHash } from 'node:crypto';
import { entities } from '../../domain/entity.ts';
import { FinalFailure } from '../../domain/errors.ts';
import { CHUNK_BYTES, CHUNK_RECORDS, READ_BYTES } from '../../domain/limits.ts';
import type { TaskClaim } from '../../domain/task.ts';
import type { FileWriter } from '../../files/file-store.ts';
import { compileForCopy, copyOut } from '../../postgres/copy-out.ts';
import { inSnapshot } from '../../postgres/session.ts';
import {
  addedEvents,
  changedProfiles,
  madeProfiles,
  type UndoSource,
  type WrittenFile,
} from '../../postgres/stores/undo.ts';
import { taskSessionName } from '../../postgres/stores/workers.ts';
import { receivingStore } from '../accept-load.ts';
import type { LoadContext } from '../context.ts';
import { ChunkCutter } from '../receive/chunk-cutter.ts';
import { type LoggedProfile, type Reversal, type UndoneLoads, walkBack } from './walk-back.ts';

/*
 * The file of an undo, in one snapshot: a line of JSON for each profile that goes back, is removed or comes back, for what is kept
 * because somebody else changed it since, and for each event.
 */

/** Writes the reverse patch as a received file. @throws FinalFailure if what it needs is no longer kept. */
export async function writePatch(
  context: LoadContext,
  claim: TaskClaim,
  source: UndoSource,
  signal: AbortSignal,
): Promise<WrittenFile> {
  requireLogged(source);
  const writer = await receivingStore(context).create();
  try {
    const patch = new PatchFile(writer, source);
    await inSnapshot(context, { name: taskSessionName(claim), signal }, async ({ client }) => {
      const selects = entities.flatMap((entity) => [
        changedProfiles(entity, source),
        madeProfiles(entity, source),
      ]);
      if (source.hasEvents && source.properties === null) selects.push(addedEvents(source));
      for (const select of selects) {
        for await (const piece of copyOut(client, compileForCopy(select), 'lines', signal))
          await patch.add(piece);
      }
    });
    for (const { ref, use } of source.properties === null ? source.eventFiles : []) {
      if (ref === null) continue;
      const read = use === 'back' ? eventBack : eventAgain(new Set(source.positions));
      for await (const piece of context.files.open(ref)) await patch.add(piece as Buffer, read);
    }
    return await patch.commit();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

function requireLogged({ isLogged, eventFiles, properties }: UndoSource): void {
  if (!isLogged)
    throw new FinalFailure('job_expired', 'the changes of the load are no longer kept: see CHANGES_DAYS');
  const expired =
    properties === null ? eventFiles.find(({ ref, use }) => ref === null && use === 'back') : undefined;
  if (expired === undefined) return;
  throw new FinalFailure(
    'job_expired',
    `the file of job ${expired.jobId} has expired, which held the events it removed`,
  );
}

const newline = 0x0a;
const bracket = 0x5b;
const removedEvent = /^{"entity":"events","removed":true,"from":(\d+),/;
const longestPrefix = 80;

/** Returns a line of an undo if it removes an event, with the position at which that was added. */
function readRemoval(line: Buffer): { readonly from: string; readonly rest: Buffer } | null {
  const [prefix, from] = removedEvent.exec(line.toString('latin1', 0, longestPrefix)) ?? [];
  return from === undefined ? null : { from, rest: line.subarray(prefix?.length) };
}

/** Brings an event back that an undo removed. */
function eventBack(line: Buffer): readonly Buffer[] {
  const removal = readRemoval(line);
  return removal === null ? [] : [Buffer.concat([Buffer.from('{"entity":"events",'), removal.rest])];
}

/** Removes an event again that an undo removed, if it was added at one of these positions. */
const eventAgain =
  (positions: ReadonlySet<string>) =>
  (line: Buffer): readonly Buffer[] =>
    positions.has(readRemoval(line)?.from ?? '') ? [line] : [];

/** Gathers lines into a file and cuts it into chunks. */
class PatchFile {
  readonly #writer: FileWriter;
  readonly #undone: UndoneLoads;
  readonly #cutter = new ChunkCutter({ maxBytes: CHUNK_BYTES, maxRecords: CHUNK_RECORDS }, 0);
  readonly #hash = createHash('sha256');
  /** Companies to which users who walked back belong afterwards. */
  readonly #companies = new Set<string>();
  #rest: Buffer = Buffer.alloc(0);
  #lines: Buffer[] = [];
  #gathered = 0;
  #bytes = 0;

  constructor(writer: FileWriter, { loads, properties, undos, inactive }: UndoSource) {
    this.#writer = writer;
    this.#undone = {
      loads: new Set(loads),
      properties: properties && new Set(properties),
      undos: new Map(undos.map(({ loadId, undoes }) => [loadId, new Set(undoes)])),
      inactive: new Set(inactive),
    };
  }

  /** Takes the next bytes of lines; what `read` makes of a line is written. */
  async add(piece: Buffer, read = (line: Buffer) => this.#finished(line)): Promise<void> {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    let start = 0;
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
      for (const line of read(bytes.subarray(start, end + 1))) this.#write(line);
      start = end + 1;
    }
    this.#rest = bytes.subarray(start);
    if (this.#gathered >= READ_BYTES) await this.#flush();
  }

  async commit(): Promise<WrittenFile> {
    await this.#flush();
    this.#cutter.close();
    const ref = await this.#writer.commit();
    const { rows, chunks } = this.#cutter;
    return { ref, bytes: this.#bytes, sha256: this.#hash.digest('hex'), rows, chunks };
  }

  #finished(line: Buffer): readonly Buffer[] {
    if (line[0] !== bracket) return [line];
    const profile = JSON.parse(line.toString('utf8', 1)) as LoggedProfile;
    const others = profile.others || (profile.entity === 'companies' && this.#companies.has(profile.id));
    const reversal = walkBack({ ...profile, others }, this.#undone);
    if (profile.entity === 'users' && reversal.does !== 'remove' && reversal.company !== null) {
      this.#companies.add(reversal.company);
    }
    return patchLines(profile, reversal).map((text) => Buffer.from(`${text}\n`));
  }

  #write(line: Buffer): void {
    this.#cutter.record(this.#bytes, this.#bytes + line.length, this.#cutter.rows + 1);
    this.#bytes += line.length;
    this.#gathered += line.length;
    this.#lines.push(line);
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#lines);
    this.#lines = [];
    this.#gathered = 0;
    this.#hash.update(bytes);
    await this.#writer.write(bytes);
  }
}

function patchLines({ entity, id, now }: LoggedProfile, { does, kept, ...to }: Reversal): readonly string[] {
  const line = (...members: readonly string[]) =>
    `{"entity":"${entity}","id":${JSON.stringify(id)},${members.join()}}`;
  const position = `"position":${now?.position ?? 0}`;
  const company = `"company":${JSON.stringify(to.company)}`;
  const values = Array.from(to.properties, ([name, value]) => `${JSON.stringify(name)}:${value}`);
  const metadata = `"metadata":{${values.join()}}`;
  const lines = kept.length === 0 ? [] : [line(`"kept":${JSON.stringify(kept)}`)];
  switch (does) {
    case 'nothing':
      return lines;
    case 'restore':
      return [...lines, line(position, company, metadata)];
    case 'remove':
      return [...lines, line(position, '"removed":true')];
    case 'bring back':
      return [...lines, line(`"first_seen_at":${JSON.stringify(to.firstSeen)}`, company, metadata)];
  }
}
