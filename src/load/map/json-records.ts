import { MAX_VALUE_BYTES } from '../../base/limits.ts';
import { automaticProperties, type LoadEntity } from '../../domain/entity.ts';
import { profilesKey, type Reason, refusedKey, reservedNames } from '../../domain/reject.ts';
import { idText, isEmptyObject, isObject, type JsonObject, parseJsonText } from '../../formats/json-text.ts';
import { CellFiller, RecordCells, role, roleNames, type Source } from './cells.ts';
import { eventColumns } from './column-plan.ts';
import { idOf } from './fields.ts';
import { JsonMembers, propertyRole } from './json-members.ts';
import { idLengthProblem, missingId, notAnId, notAnObject, textProblem } from './reasons.ts';
import type { RefusedBefore } from './record-places.ts';
import { UNCOUNTED } from './row-buffer.ts';
import { RowWriter } from './row-writer.ts';
import type { Rows } from './rows.ts';

export interface RecordReading {
  readonly entity: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  /** True if a preset rewrote the file. Records may then contain `profilesKey` and `refusedKey`. */
  readonly isRewritten?: boolean;
}

const dotted = 'metadata.';
/** Keys that can be properties only if they are written as `metadata.x`. */
const documented: ReadonlySet<string> = new Set([...eventColumns, 'company', 'removed']);
/**
 * If a record contains one of these names, the parser reads the record. The value of `company` is
 * mostly an object.
 */
const unfitNames: ReadonlySet<string> = new Set(['company', ...reservedNames]);
const unfit = -1;

/**
 * Records that `JsonMembers` cannot walk, and all records of loads with a `map`, are instead parsed
 * and written as JSON again. The result is the same as with `JsonMembers`. For users of 270 bytes
 * on a busy machine, `JsonMembers` takes 1.8 µs per record, the parser 5.7 µs, and a CSV record 1.4
 * µs.
 */
export class JsonRecords {
  readonly #reading: RecordReading;
  readonly #map: ReadonlyMap<string, string>;
  readonly #isVerbatim: boolean;
  readonly #rows: Rows;
  readonly #writer: RowWriter;
  readonly #members: JsonMembers;
  readonly #records: CellFiller;
  readonly #properties = new CellFiller(() => role.property);
  /** Cells of the current record and of its additional rows. The first `#used` are in use. */
  readonly #cells: RecordCells[] = [new RecordCells()];
  #used = 0;

  constructor(reading: RecordReading, rows: Rows) {
    const userRole = reading.entity === 'companies' ? role.userOfCompany : role.userId;
    const fieldRole = (name: string) => (name === 'user_id' ? userRole : roleNames.get(name));
    const walkedRole = (name: string) =>
      fieldRole(name) ?? (name.startsWith(dotted) ? unfit : propertyRole(name));
    this.#reading = reading;
    this.#map = new Map(Object.entries(reading.map));
    this.#isVerbatim = this.#map.size === 0;
    this.#rows = rows;
    this.#writer = new RowWriter(reading.entity, rows);
    const roleOf = (name: string) => (unfitNames.has(name) ? unfit : walkedRole(name));
    this.#members = reading.isRewritten
      ? new JsonMembers((name) => (name === profilesKey ? role.profiles : roleOf(name)), {
          roleOf,
          next: () => this.#nextProfile(),
        })
      : new JsonMembers(roleOf);
    this.#records = new CellFiller((name) => fieldRole(name) ?? role.property);
  }

  /** Forgets the names of the previous chunk. Must be called before each chunk of a file. */
  reset(): void {
    this.#members.reset();
  }

  /**
   * Reads the record in bytes [start, end), which must be valid UTF-8. Returns the reason for
   * refusing the record, or `null`.
   */
  read(bytes: Buffer, start: number, end: number, record: number): Reason | null {
    const cells = this.#isVerbatim ? this.walk(bytes, start, end) : null;
    if (cells === null) return this.parse(bytes.toString('utf8', start, end), record);
    return this.#used === 1 ? this.#writer.write(cells, record) : this.#write(record);
  }

  /** Returns the cells of the record, or `null` if the parser must read it. */
  walk(bytes: Buffer, start: number, end: number): RecordCells | null {
    const cells = this.#first;
    this.#used = 1;
    return end - start <= MAX_VALUE_BYTES && this.#members.walk(cells, bytes, start, end) ? cells : null;
  }

  /** See `read`. */
  parse(text: string, record: number): Reason | null {
    const parsed = parseJsonText(text);
    if ('code' in parsed) return parsed;
    const object = parsed.value;
    if (!isObject(object)) return notAnObject;
    const { [refusedKey]: refusal, [profilesKey]: profiles } = object;
    for (const name of reservedNames) if (name in object) delete object[name];
    const isRewritten = this.#reading.isRewritten === true;
    if (isRewritten && isObject(refusal)) return asReceived(refusal);
    this.#used = 0;
    this.#records.dropped = 0;
    this.#properties.dropped = 0;
    const source = { ...parsed, length: Buffer.byteLength(text) };
    const reason =
      this.#fill(this.#renamed(object), source) ??
      (isRewritten && Array.isArray(profiles) ? this.#fillProfiles(profiles, source) : null);
    if (reason !== null) return reason;
    const dropped = this.#records.dropped + this.#properties.dropped;
    return this.#rows.writeWithout(dropped, record, () => this.#write(record));
  }

  /**
   * ID of the record's user, even if the record was refused. `null` if the record has no valid user
   * id.
   */
  userOf(text: string): string | null {
    if (this.#reading.entity === 'companies') return null;
    const parsed = parseJsonText(text);
    const object = 'code' in parsed ? null : parsed.value;
    return isObject(object) ? idOf(this.#renamed(object)['user_id']) : null;
  }

  /** Additional rows are written before the row of the record, so that this row gets no digest. */
  #write(record: number): Reason | null {
    for (let at = this.#used - 1; at > 0; at--) {
      const reason = this.#writer.check(this.#cells[at] ?? this.#first, record);
      if (reason !== null) return reason;
    }
    const reason = this.#used > 1 ? this.#writer.check(this.#first, record) : null;
    if (reason !== null) return reason;
    for (let at = this.#used - 1; at > 0; at--) this.#writer.write(this.#cells[at] ?? this.#first, record);
    return this.#writer.write(this.#first, record);
  }

  get #first(): RecordCells {
    return this.#cells[0] as RecordCells;
  }

  #next(): RecordCells {
    const cells = this.#cells[this.#used] ?? new RecordCells();
    this.#cells[this.#used++] = cells;
    cells.reset();
    return cells;
  }

  #nextProfile(): RecordCells {
    const cells = this.#next();
    cells.flags = UNCOUNTED;
    return cells;
  }

  /** Applies the map, and replaces `metadata.x` with `x`. Most records need neither. */
  #renamed(object: JsonObject): JsonObject {
    if (this.#map.size === 0 && !Object.keys(object).some((name) => name.startsWith(dotted))) return object;
    const metadataEntries: [string, unknown][] = [];
    const entries = Object.entries(object).flatMap(([name, value]): [string, unknown][] => {
      const target = this.#map.get(name) ?? name;
      if (target === '' && this.#map.has(name)) return [];
      if (!target.startsWith(dotted)) return [[target, value]];
      const property = target.slice(dotted.length);
      if (!documented.has(property)) return [[property, value]];
      metadataEntries.push([property, value]);
      return [];
    });
    const { metadata } = object;
    if (metadataEntries.length > 0 && (metadata == null || isObject(metadata))) {
      entries.push(['metadata', Object.fromEntries([...Object.entries(metadata ?? {}), ...metadataEntries])]);
    }
    return Object.fromEntries(entries);
  }

  /** Profiles that the preset derived from the record do not count as rows. */
  #fillProfiles(profiles: readonly unknown[], source: Source): Reason | null {
    let reason: Reason | null = null;
    for (const profile of profiles) {
      const at = this.#used;
      reason ??= isObject(profile) ? this.#fill(profile, source) : notAnObject;
      Object.assign(this.#cells[at] ?? this.#first, { flags: UNCOUNTED });
    }
    return reason;
  }

  #fill(object: JsonObject, source: Source): Reason | null {
    const cells = this.#next();
    const { reason, company } = isOfUser(object, this.#reading.entity)
      ? takeCompany(object)
      : takeCompanyId(object);
    if (reason !== null) return reason;
    const { metadata } = object;
    object['metadata'] = undefined;
    cells.problem =
      this.#records.fill(cells.own, object, source, '') ??
      this.#fillMetadata(cells, metadata, source, 'metadata');
    cells.findFields();
    if (company !== null) this.#fillCompany(company, source);
    return null;
  }

  #fillCompany({ id, others }: Company, source: Source): void {
    const cells = this.#next();
    const { metadata, ...properties } = others;
    for (const name of automaticProperties) properties[name] = undefined;
    cells.entity = 'companies';
    cells.flags = UNCOUNTED;
    this.#records.fill(cells.own, { company_id: id }, source, '');
    cells.problem =
      this.#properties.fill(cells.metadata, properties, source, 'company') ??
      this.#fillMetadata(cells, metadata, source, 'company.metadata');
    cells.findFields();
  }

  #fillMetadata(cells: RecordCells, metadata: unknown, source: Source, path: string): Reason | null {
    if (metadata === undefined || metadata === null || isEmptyObject(metadata)) return null;
    if (!isObject(metadata))
      return { code: 'invalid_type', message: `${path} must be an object`, column: path };
    return this.#properties.fill(cells.metadata, metadata, source, path);
  }
}

interface Taken {
  readonly reason: Reason | null;
  /** Company that the record of a user describes, or `null`. */
  readonly company: Company | null;
}

interface Company {
  readonly id: string;
  readonly others: JsonObject;
}

function isOfUser({ event_type: kind, user_id }: JsonObject, entity: LoadEntity): boolean {
  if (kind !== undefined && kind !== null) return kind === 'identify_user';
  return entity === 'auto' ? user_id !== undefined : entity === 'users';
}

/** For the record of a user: puts the id of `company` into `company_id`. */
function takeCompany(object: JsonObject): Taken {
  const { company_id: outerId, company } = object;
  object['company'] = undefined;
  if (company === undefined || isEmptyObject(company)) return nothingTaken;
  if (company === null) {
    object['company_id'] ??= null;
    return nothingTaken;
  }
  if (!isObject(company))
    return refused({ code: 'invalid_type', message: 'company must be an object', column: 'company' });
  const { company_id: fullId, id: shortId, ...others } = company;
  const id = agreedId({ 'company.company_id': fullId, 'company.id': shortId, company_id: outerId });
  if (typeof id !== 'string') return refused(id ?? missingId('company.company_id'));
  object['company_id'] = id;
  return { reason: null, company: { id, others } };
}

/** For the record of a company or an event: moves the id from `company` to `company_id`. */
function takeCompanyId(object: JsonObject): Taken {
  const { company_id: outerId, company } = object;
  if (!isObject(company)) return nothingTaken;
  const { company_id: fullId, id: shortId, ...others } = company;
  const id = agreedId({ company_id: outerId, 'company.company_id': fullId, 'company.id': shortId });
  if (id !== null && typeof id !== 'string') return refused(id);
  object['company_id'] = id;
  if ((fullId ?? shortId) != null) object['company'] = isEmptyObject(others) ? undefined : others;
  return nothingTaken;
}

const nothingTaken: Taken = { reason: null, company: null };
const refused = (reason: Reason): Taken => ({ reason, company: null });

/**
 * Returns the id that all values agree on, or `null` if there is none. Returns a reason if the
 * values differ or one is not an id.
 */
function agreedId(ids: Readonly<Record<string, unknown>>): string | Reason | null {
  let first: readonly [column: string, id: string] | null = null;
  for (const [column, value] of Object.entries(ids)) {
    if (value === undefined || value === null) continue;
    const id = idText(value);
    if (id === null) return notAnId(column);
    const problem = textProblem(id, column) ?? idLengthProblem(Buffer.byteLength(id), column);
    if (problem !== null) return problem;
    if (first !== null && id !== first[1]) {
      const message = `${first[0]} and ${column} are different ids; give one, or the same`;
      return { code: 'invalid_id', message, column };
    }
    first ??= [column, id];
  }
  return first?.[1] ?? null;
}

function asReceived(refusal: JsonObject): RefusedBefore {
  const { raw, ...reason } = refusal as unknown as Reason & { readonly raw: string };
  return { ...reason, raw: Buffer.from(raw, 'base64') };
}
