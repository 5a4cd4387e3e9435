import { createHash } from 'node:crypto';
import { FinalFailure } from '../../base/errors.ts';
import { CHUNK_BYTES, CHUNK_RECORDS, READ_BYTES } from '../../base/limits.ts';
import { entities } from '../../domain/entity.ts';
import type { TaskClaim } from '../../domain/task.ts';
import type { FileWriter } from '../../files/file-store.ts';
import { ChunkCutter } from '../../load/receive/chunk-cutter.ts';
import { receivingStore } from '../../load/received.ts';
import type { HookContext, OwnFile } from '../../load/seam.ts';
import { compileForCopy, copyOut } from '../../postgres/copy-out.ts';
import { inSnapshot } from '../../postgres/session.ts';
import { taskSessionName } from '../../tasks/worker-store.ts';
import { addedEvents, changedProfiles, madeProfiles } from './line-store.ts';
import { readUndoSource, type UndoSource } from './store.ts';
import {
  type LoggedChange,
  type LoggedEnd,
  ProfileWalk,
  type Reversal,
  type UndoneLoads,
} from './walk-back.ts';

/*
 * Writes the file of an undo, from one snapshot. The file has a line of JSON for each event to
 * remove, and for each profile to restore, remove or recreate. Further lines list values that are
 * kept, because they were changed later.
 */

/** @throws FinalFailure if the log no longer contains the changes */
export async function writePatch(
  context: HookContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<OwnFile> {
  const source = await readUndoSource(context.db, claim.subjectId);
  if (!source.isLogged)
    throw new FinalFailure('job_expired', 'The changes of the load are no longer kept: see CHANGES_DAYS');
  const profiles = entities.map((entity) => [changedProfiles(entity, source), madeProfiles(entity, source)]);
  const selects = source.loads.length === 0 ? [] : [...profiles.flat(), addedEvents(source)];
  const writer = await receivingStore(context).create();
  try {
    const patch = new PatchFile(writer, source);
    await inSnapshot(context, { name: taskSessionName(claim), signal }, async ({ client }) => {
      for (const select of selects) {
        for await (const piece of copyOut(client, compileForCopy(select), 'values', signal))
          await patch.add(piece);
      }
    });
    return await patch.commit();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

const newline = 0x0a;
const bracket = 0x5b;

class PatchFile {
  readonly #writer: FileWriter;
  readonly #undone: UndoneLoads;
  #walk: ProfileWalk;
  readonly #cutter = new ChunkCutter({ maxBytes: CHUNK_BYTES, maxRecords: CHUNK_RECORDS }, 0);
  readonly #hash = createHash('sha256');
  readonly #companies = new Set<string>();
  #rest: Buffer = Buffer.alloc(0);
  #lines: Buffer[] = [];
  #gathered = 0;
  #bytes = 0;

  constructor(writer: FileWriter, { loads, allUndone, ignoredAuthors }: UndoSource) {
    this.#writer = writer;
    const loadOfPosition = new Map(
      [...allUndone].flatMap(([load, positions]) => positions.map((at) => [at, load])),
    );
    this.#undone = {
      loads: new Set(loads),
      allUndone: new Set(allUndone.keys()),
      ignoredAuthors,
      loadOfPosition,
    };
    this.#walk = new ProfileWalk(this.#undone);
  }

  async add(piece: Buffer): Promise<void> {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    let start = 0;
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
      for (const line of this.#finished(bytes.subarray(start, end + 1))) this.#write(line);
      start = end + 1;
    }
    this.#rest = bytes.subarray(start);
    if (this.#gathered >= READ_BYTES) await this.#flush();
  }

  async commit(): Promise<OwnFile> {
    await this.#flush();
    this.#cutter.close();
    const ref = await this.#writer.commit();
    const { rows, chunks } = this.#cutter;
    return { ref, bytes: this.#bytes, sha256: this.#hash.digest('hex'), rows, chunks };
  }

  #finished(line: Buffer): readonly Buffer[] {
    if (line[0] !== bracket) return [line];
    const logged = JSON.parse(line.toString('utf8', 1)) as LoggedChange | LoggedEnd;
    if (!('now' in logged)) {
      this.#walk.take(logged);
      return [];
    }
    const { entity, id, now } = logged;
    const hasOtherUsers = logged.hasOtherUsers || (entity === 'companies' && this.#companies.has(id));
    const reversal = this.#walk.end({ now, hasOtherUsers });
    this.#walk = new ProfileWalk(this.#undone);
    if (entity === 'users' && reversal.does !== 'remove' && reversal.company !== null) {
      this.#companies.add(reversal.company);
    }
    return patchLines(logged, reversal).map((text) => Buffer.from(`${text}\n`));
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

function patchLines({ entity, id, now }: LoggedEnd, { does, kept, ...to }: Reversal): readonly string[] {
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
