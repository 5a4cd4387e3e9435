import { isUtf8 } from 'node:buffer';
import { MAX_REJECT_RAW_BYTES } from '../../base/limits.ts';
import { turn } from '../../base/yielding.ts';
import { isRecordKind } from '../../domain/entity.ts';
import {
  isRejectColumn,
  profilesKey,
  type Reason,
  refusedKey,
  rejectJobKey,
  rejectRowKey,
} from '../../domain/reject.ts';
import type { Preset, SourceOptions } from '../../domain/source.ts';
import type { FileStore } from '../../files/file-store.ts';
import { isObject, type JsonObject, parseJsonText, writeJson } from '../../formats/json-text.ts';
import { createLineScanner } from '../../formats/record-scanner.ts';
import { idOf } from '../../load/map/fields.ts';
import { notAnObject, notUtf8, tooLarge } from '../../load/map/reasons.ts';
import { RecordPlaces, type RefusedBefore, refusedBefore } from '../../load/map/record-places.ts';
import type { ReceivedFile } from '../../load/receive/received-file.ts';
import { CsvObjects } from './csv-objects.ts';
import { readRecords, userOf } from './read-records.ts';
import { isReason, type ProductContext } from './record.ts';

/*
 * Rewrites another product's file as NDJSON in sluice's format before the load is accepted. A
 * record keeps its row number and its line number. The member `sluice_profiles` of a record
 * contains the profiles that the record implies. These profiles are not counted. A record that
 * cannot be rewritten becomes a line with the reason and the original text.
 */

const MAX_MEMBERSHIPS = 250_000;

/** Number of lines that are rewritten before other work in the process gets a turn. */
const LINES_AT_A_TIME = 100;

export async function* rewrite(
  files: Pick<FileStore, 'readRange'>,
  received: ReceivedFile,
  product: Preset,
  { companyFrom }: SourceOptions,
): AsyncGenerator<Buffer> {
  const rewriter = new Rewriter(product, {
    companyFrom: typeof companyFrom === 'string' ? companyFrom : null,
  });
  const places = new RecordPlaces();
  const csv = received.header && new CsvObjects(received.header, places);
  let line = 1;
  for (const chunk of received.chunks) {
    const { byteStart } = chunk;
    const end = chunk.oversized ? byteStart + MAX_REJECT_RAW_BYTES : chunk.byteEnd;
    const bytes = await files.readRange(received.ref, byteStart, end);
    places.reset();
    if (chunk.oversized) places.add(0, bytes.length, 0);
    else if (csv === null) indexLines(places, bytes);
    else csv.index(bytes);
    for (let first = 0; first < places.count; first += LINES_AT_A_TIME) {
      await turn();
      let text = '';
      const last = Math.min(places.count, first + LINES_AT_A_TIME);
      for (let record = first; record < last; record++) {
        const at = chunk.firstLine + (places.lines[record] ?? 0);
        const raw = bytes.subarray(places.starts[record], places.ends[record]);
        const content = chunk.oversized
          ? tooLarge(chunk.byteEnd - byteStart, bytes.length)
          : (csv?.read(record) ?? textOf(raw));
        text += `${'\n'.repeat(Math.max(0, at - line))}${rewriter.rewrite(content, raw)}\n`;
        line = Math.max(at, line) + 1;
      }
      yield Buffer.from(text);
    }
  }
}

function indexLines(places: RecordPlaces, bytes: Buffer): void {
  const scanner = createLineScanner();
  let line = 0;
  let start = 0;
  while (start < bytes.length) {
    const end = scanner.next(bytes, start, bytes.length, true);
    if (!scanner.blank) places.add(start, scanner.contentEnd, line);
    line += scanner.lines;
    start = end;
  }
}

function textOf(raw: Buffer): string | Reason {
  return isUtf8(raw) ? raw.toString('utf8') : notUtf8(raw);
}

class Rewriter {
  readonly #product: Preset;
  readonly #context: ProductContext;
  /** The latest company of each user in the part of the file that has been read. */
  readonly #memberships = new Map<string, string>();

  constructor(product: Preset, context: ProductContext) {
    this.#product = product;
    this.#context = context;
  }

  rewrite(text: string | Reason, raw: Buffer): string {
    if (typeof text !== 'string') return refused(text, raw, null);
    const parsed = parseJsonText(text);
    if ('code' in parsed) return refused(parsed, raw, null);
    const { value } = parsed;
    if (!isObject(value)) return refused(notAnObject, raw, null);
    if (isOurs(value)) return text;
    const { [rejectJobKey]: job, [rejectRowKey]: row } = value;
    for (const name of Object.keys(value)) if (isRejectColumn(name)) delete value[name];
    const { records, marked } = readRecords(this.#product, { ...parsed, value }, this.#context);
    if (isReason(records)) return refused(records, raw, userOf(value));
    const [record, ...profiles] = records;
    this.#joinCompany(record, profiles);
    if (profiles.length > 0) record[profilesKey] = profiles;
    if (job !== undefined) Object.assign(record, { [rejectJobKey]: job, [rejectRowKey]: row });
    return writeJson(record, marked);
  }

  /**
   * If an event has a company other than the user's last one, adds a profile that changes the
   * user's company.
   */
  #joinCompany(record: JsonObject, profiles: JsonObject[]): void {
    for (const profile of [record, ...profiles]) {
      const { user_id, company_id, company } = profile;
      const companyKey = idOf(company_id ?? (isObject(company) ? company['company_id'] : undefined));
      if (companyKey === null) continue;
      const user = idOf(user_id);
      if (user === null || this.#memberships.get(user) === companyKey) continue;
      if (this.#memberships.size >= MAX_MEMBERSHIPS) this.#memberships.clear();
      const isUser = (each: JsonObject) => each['event_type'] === 'identify_user';
      if (!isUser(profile) && !profiles.some(isUser))
        profiles.push({ event_type: 'identify_user', user_id, company_id });
      this.#memberships.set(user, companyKey);
    }
  }
}

/** Returns true if a record corrects one that was rewritten and then refused. */
function isOurs(record: JsonObject): boolean {
  const { event_type: kind, metadata, app_token } = record;
  const isMended = Object.keys(record).some(isRejectColumn);
  return isMended && typeof kind === 'string' && isRecordKind(kind) && isObject(metadata) && !app_token;
}

function refused(why: Reason | RefusedBefore, received: Buffer, userId: string | null): string {
  const { raw, ...reason } = 'raw' in why ? why : refusedBefore(why, received);
  const refusal = { ...reason, raw: Buffer.from(raw).toString('base64') };
  return JSON.stringify({ ...(userId !== null && { user_id: userId }), [refusedKey]: refusal });
}
