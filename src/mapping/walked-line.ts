import { automaticProperties } from '../domain/entity.ts';
import { MAX_ID_BYTES, MAX_VALUE_BYTES } from '../domain/limits.ts';
import { rejectKey, rejectRawKey } from '../domain/reject.ts';
import { propertyNameProblem } from './column-plan.ts';
import {
  CONTAINER,
  ESCAPES,
  JsonMembers,
  type MemberList,
  NULL,
  NUMBER,
  OTHER_NUMBERS,
  OTHER_TEXT,
  TEXT,
} from './json-members.ts';
import { fromByteString } from './json-text.ts';
import { JsonbOrder } from './jsonb-order.ts';
import { isMetadataTaken } from './parsed-records.ts';
import type { PropertyTypes } from './property-types.ts';
import { NESTED, REMOVES } from './row-buffer.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** Up to this length a loop beats a call of `copy`. */
const SHORT_BYTES = 48;
/** Digits of a whole number that is the same as a JavaScript number. */
const MAX_ID_DIGITS = 15;

/** The roles of members. In a record that does not name its kind, all from `ofProfiles` on are properties. */
export const role = {
  unfit: -1,
  userId: 0,
  companyId: 1,
  metadata: 2,
  kind: 3,
  automatic: 4,
  eventId: 5,
  insertId: 6,
  eventName: 7,
  source: 8,
  time: 9,
  url: 10,
  property: 11,
} as const;
const roles = role.property + 1;

/** The first role that is of properties: of a profile, and of an event. */
export const ofProfiles = role.eventId;
export const ofEvents = role.property;

const roleNames: ReadonlyMap<string, number> = new Map<string, number>([
  ['user_id', role.userId],
  ['company_id', role.companyId],
  ['metadata', role.metadata],
  ['event_type', role.kind],
  ['event_id', role.eventId],
  ['insert_id', role.insertId],
  ['event_name', role.eventName],
  ['source', role.source],
  ['inserted_at', role.time],
  ['url', role.url],
  // An object, most times.
  ['company', role.unfit],
  [rejectKey, role.unfit],
  [rejectRawKey, role.unfit],
  ...automaticProperties.map((name) => [name, role.automatic] as const),
]);

function propertyRole(name: string): number {
  return propertyNameProblem(fromByteString(name)) === null ? role.property : role.unfit;
}

function roleOf(name: string): number {
  return roleNames.get(name) ?? (name.startsWith('metadata.') ? role.unfit : propertyRole(name));
}

/** A record of NDJSON that was walked, and its parts, to be written as the text that COPY reads. */
export class WalkedLine {
  bytes: Buffer = Buffer.alloc(0);
  readonly #members = new JsonMembers(roleOf, propertyRole, role.metadata);
  /** Per role: the member that has it, or -1. */
  readonly #byRole = new Int32Array(roles);
  readonly #outerOrder = new JsonbOrder();
  readonly #innerOrder = new JsonbOrder();
  #start = 0;
  #end = 0;

  /** Forgets the names of a chunk. */
  reset(): void {
    this.#members.reset();
  }

  /** Returns true if bytes [start, end) could be walked. */
  walk(bytes: Buffer, start: number, end: number): boolean {
    if (end - start > MAX_VALUE_BYTES || !this.#members.walk(bytes, start, end)) return false;
    this.bytes = bytes;
    this.#start = start;
    this.#end = end;
    const { count, names } = this.#members.outer;
    this.#byRole.fill(-1);
    for (let member = 0; member < count; member++) this.#byRole[names[member]?.role ?? 0] = member;
    return true;
  }

  has(which: number): boolean {
    return (this.#byRole[which] ?? -1) !== -1;
  }

  isNull(which: number): boolean {
    return this.#members.outer.kinds[this.#byRole[which] ?? -1] === NULL;
  }

  /** Returns where the text of a member begins, that is without escapes, or a whole number without a sign; -1 for anything else. */
  textStart(which: number): number {
    const { kinds, starts } = this.#members.outer;
    const member = this.#byRole[which] ?? -1;
    const start = starts[member] ?? 0;
    if (kinds[member] === TEXT) return start + 1;
    return kinds[member] === NUMBER && isWhole(this.bytes, start, this.#endOf(member)) ? start : -1;
  }

  /** Returns where it ends. */
  textEnd(which: number): number {
    const member = this.#byRole[which] ?? -1;
    const end = this.#endOf(member);
    return this.#members.outer.kinds[member] === TEXT ? end - 1 : end;
  }

  #endOf(member: number): number {
    return this.#members.outer.ends[member] ?? 0;
  }

  /** Returns true if a member has the text of an id: 1 to `MAX_ID_BYTES` bytes. */
  isId(which: number): boolean {
    const start = this.textStart(which);
    if (start === -1) return false;
    const length = this.textEnd(which) - start;
    return length > 0 && length <= MAX_ID_BYTES;
  }

  /** Copies the text of a member; returns where it ends. It has nothing that COPY would have escaped. */
  copyText(which: number, target: Buffer, at: number): number {
    return copyPlain(this.bytes, this.textStart(which), this.textEnd(which), target, at);
  }

  /**
   * Whether the parser would leave the properties as they are: those from `firstRole` on, and those in the metadata. Byte for
   * byte if `exactly`, otherwise so that jsonb takes both for the same.
   */
  isKept(firstRole: number, exactly: boolean): boolean {
    const { outer, inner } = this.#members;
    const metadata = this.#byRole[role.metadata] ?? -1;
    if (metadata !== -1 && !this.#isObject(metadata)) return false;
    const unlike = exactly ? OTHER_NUMBERS | OTHER_TEXT : OTHER_NUMBERS;
    const isInnerKept = (inner.marks & unlike) === 0;
    if (isInnerKept && (outer.marks & unlike) === 0) return true;
    for (let member = 0; member < outer.count; member++) {
      if ((outer.names[member]?.role ?? 0) >= firstRole) return false;
    }
    return isInnerKept || this.#isTaken(metadata);
  }

  #isObject(member: number): boolean {
    const { kinds, starts } = this.#members.outer;
    return kinds[member] === CONTAINER && this.bytes[starts[member] ?? 0] === 0x7b;
  }

  #isTaken(metadata: number): boolean {
    const text = this.bytes.toString('latin1', this.#start, this.#end);
    const end = this.#endOf(metadata) - this.#start;
    return isMetadataTaken(text, end, this.has(role.kind), this.has(role.automatic));
  }

  /** REMOVES and NESTED, as `RowBuffer` has them, of the properties from `firstRole` on and those in the metadata. */
  flags(firstRole: number): number {
    return flagsOf(this.#members.outer, firstRole) | flagsOf(this.#members.inner, firstRole);
  }

  /** The same properties: their types. */
  noteTypes(types: PropertyTypes, firstRole: number): void {
    this.#noteTypes(this.#members.outer, types, firstRole);
    this.#noteTypes(this.#members.inner, types, firstRole);
  }

  #noteTypes(
    { count, names, kinds, starts, ends }: MemberList,
    types: PropertyTypes,
    firstRole: number,
  ): void {
    for (let member = 0; member < count; member++) {
      const name = names[member];
      if (name === undefined || name.role < firstRole) continue;
      types.written.noteWritten(
        name.text,
        kinds[member] ?? 0,
        this.bytes,
        starts[member] ?? 0,
        ends[member] ?? 0,
      );
    }
  }

  /** Copies the properties of a profile, in jsonb's order, those in the metadata behind the others; returns where they end. */
  copyOrdered(target: Buffer, at: number): number {
    const { outer, inner } = this.#members;
    const to = this.#copyMembers(outer, this.#outerOrder.of(outer), ofProfiles, target, at, at);
    return this.#copyMembers(inner, this.#innerOrder.of(inner), ofProfiles, target, to, at);
  }

  /** Copies the properties of an event as they are written, those in the metadata behind the others; returns where they end. */
  copyProperties(target: Buffer, at: number): number {
    const { outer, inner } = this.#members;
    let to = this.#copyMembers(outer, null, ofEvents, target, at, at);
    if (inner.count === 0) return to;
    if (to !== at) target[to++] = COMMA;
    const metadata = this.#byRole[role.metadata] ?? -1;
    return this.#copy(inner, (outer.starts[metadata] ?? 0) + 1, this.#endOf(metadata) - 1, target, to);
  }

  /** Copies the members from `firstRole` on, in `order` or as they come. The properties begin at `first`. */
  #copyMembers(
    list: MemberList,
    order: Int32Array | null,
    firstRole: number,
    target: Buffer,
    at: number,
    first: number,
  ): number {
    let to = at;
    for (let number = 0; number < list.count; number++) {
      const member = order === null ? number : (order[number] ?? 0);
      const name = list.names[member];
      if (name === undefined || name.role < firstRole) continue;
      if (to !== first) target[to++] = COMMA;
      target[to++] = QUOTE;
      const { bytes } = name;
      for (let i = 0; i < bytes.length; i++) target[to++] = bytes[i] ?? 0;
      target[to++] = COLON;
      to = this.#copy(list, list.starts[member] ?? 0, list.ends[member] ?? 0, target, to);
    }
    return to;
  }

  #copy({ marks }: MemberList, start: number, end: number, target: Buffer, at: number): number {
    if ((marks & ESCAPES) === 0) return copyPlain(this.bytes, start, end, target, at);
    let to = at;
    for (let from = start; from < end; from++) {
      const byte = this.bytes[from] ?? 0;
      if (byte === BACKSLASH) target[to++] = BACKSLASH;
      target[to++] = byte;
    }
    return to;
  }
}

function copyPlain(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (end - start > SHORT_BYTES) return at + bytes.copy(target, at, start, end);
  let to = at;
  for (let from = start; from < end; from++) target[to++] = bytes[from] ?? 0;
  return to;
}

function isWhole(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < ZERO || byte > NINE) return false;
  }
  return end - start <= MAX_ID_DIGITS;
}

function flagsOf({ count, names, kinds }: MemberList, firstRole: number): number {
  let flags = 0;
  for (let member = 0; member < count; member++) {
    const kind = kinds[member];
    if (kind !== NULL && kind !== CONTAINER) continue;
    if ((names[member]?.role ?? 0) >= firstRole) flags |= kind === NULL ? REMOVES : NESTED;
  }
  return flags;
}
