import {
  automaticProperties,
  type Entity,
  isEventKind,
  isRecordKind,
  type LoadEntity,
} from '../domain/entity.ts';
import type { Preset } from '../domain/load.ts';
import { type Reason, rejectKey, rejectRawKey } from '../domain/reject.ts';
import { eventColumns } from './column-plan.ts';
import { kindProblem } from './event-record.ts';
import { readEvent, readTime } from './json-event.ts';
import { isObject, type JsonObject } from './json-object.ts';
import { dropEventKeys, readProfile } from './json-record.ts';
import { type ParsedJson, parseJson } from './json-text.ts';
import { notOfPreset, PresetProfiles } from './preset-rows.ts';
import { readPreset } from './presets/read-preset.ts';
import type { Rows } from './rows.ts';

const dotted = 'metadata.';

/** A load's rules for its records. */
export interface RecordRules {
  readonly entity: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  readonly preset: Preset | null;
}

/** Returns true if the text of a record says what is read from it. */
export function isVerbatim({ map, preset }: RecordRules): boolean {
  return preset === null && Object.keys(map).length === 0;
}

/** Turns records of JSON into rows, or reasons why not, whatever they are: parses them, checks the values, writes them anew. */
export class ParsedRecords {
  readonly #entity: LoadEntity;
  readonly #map: ReadonlyMap<string, string>;
  readonly #rows: Rows;
  readonly #preset: Preset | null;
  readonly #presetProfiles: PresetProfiles;
  readonly #verbatim: boolean;

  constructor(rules: RecordRules, rows: Rows) {
    this.#entity = rules.entity;
    this.#map = new Map(Object.entries(rules.map));
    this.#rows = rows;
    this.#preset = rules.preset;
    this.#presetProfiles = new PresetProfiles(rows);
    this.#verbatim = isVerbatim(rules);
  }

  /** Reads the record whose byte string is `text`; null if it became a row. */
  read(text: string, record: number): Reason | null {
    const line = this.#verbatim ? withoutSeen(text) : text;
    const parsed = parseJson(line);
    if ('code' in parsed) return parsed;
    if (!isObject(parsed.value)) return notAnObject;
    return this.#preset === null
      ? this.#readRecord(this.#renamed(parsed.value), parsed, line, record)
      : this.#readPreset(this.#preset, parsed.value, parsed, line, record);
  }

  /** Applies the map and `metadata.x` = `x`; nearly always there is nothing to do. */
  #renamed(object: JsonObject): JsonObject {
    let rename = this.#map.size > 0;
    if (!rename) for (const name in object) if (name.startsWith(dotted)) rename = true;
    if (!rename) return object;
    const within: [string, unknown][] = [];
    const renamed = Object.entries(object).flatMap(([name, value]): [string, unknown][] => {
      const own = this.#map.get(name) ?? name;
      if (own === '' && this.#map.has(name)) return [];
      if (!own.startsWith(dotted)) return [[own, value]];
      const property = own.slice(dotted.length);
      if (!documented.has(property)) return [[property, value]];
      within.push([property, value]);
      return [];
    });
    const { metadata } = object;
    if (within.length > 0 && (metadata == null || isObject(metadata))) {
      renamed.push(['metadata', Object.fromEntries([...Object.entries(metadata ?? {}), ...within])]);
    }
    return Object.fromEntries(renamed);
  }

  #readRecord(object: JsonObject, parsed: ParsedJson, line: string, record: number): Reason | null {
    const said = object['event_type'];
    if (said !== undefined && said !== null) return this.#readKind(said, object, parsed, line, record);
    const entity = this.#entity === 'auto' ? entityOf(object) : this.#entity;
    return entity === null ? neitherId : this.#readProfile(entity, null, object, parsed, line, record);
  }

  /** A record of another product: one of ours, and what it says of profiles besides. */
  #readPreset(
    preset: Preset,
    object: JsonObject,
    parsed: ParsedJson,
    line: string,
    record: number,
  ): Reason | null {
    const { [rejectKey]: _, [rejectRawKey]: __, ...theirs } = object;
    const ours = readPreset[preset](theirs);
    if (ours === null) return notOfPreset(preset);
    const reason =
      this.#presetProfiles.read(ours.profiles, parsed, line.length, record) ??
      this.#readKind(ours.record['event_type'], ours.record, parsed, line, record);
    if (reason === null) this.#presetProfiles.add();
    return reason;
  }

  /** A record that says what it is. */
  #readKind(
    said: unknown,
    object: JsonObject,
    parsed: ParsedJson,
    line: string,
    record: number,
  ): Reason | null {
    const text = typeof said === 'string' ? said : JSON.stringify(said);
    const kind = isRecordKind(text) ? text : null;
    if (kind !== null) this.#rows.kinds.set(record, kind);
    const problem = kindProblem(kind, this.#entity, text);
    if (problem !== null || kind === null) return problem;
    object['event_type'] = undefined;
    if (isEventKind(kind)) {
      const source = this.#verbatim ? sourceOfMetadata(line, object, parsed) : null;
      return readEvent(kind, object, parsed, line.length, record, this.#rows, source);
    }
    const instant = readTime(object, this.#rows.times);
    if (instant !== null && 'code' in instant) return instant;
    const entity = kind === 'identify_user' ? 'users' : 'companies';
    dropEventKeys(object, entity);
    return this.#readProfile(entity, instant?.text ?? null, object, parsed, line, record);
  }

  /** `at`: since when it is so; null: since the load was accepted. */
  #readProfile(
    entity: Entity,
    at: string | null,
    object: JsonObject,
    parsed: ParsedJson,
    line: string,
    record: number,
  ): Reason | null {
    const source = this.#verbatim ? sourceOfMetadata(line, object, parsed) : null;
    return readProfile(object, parsed, { entity, at, length: line.length, record, source }, this.#rows);
  }
}

/** Keys that no property has unless it is written `metadata.x`. */
const documented: ReadonlySet<string> = new Set([...eventColumns, 'company']);

const notAnObject: Reason = {
  code: 'not_an_object',
  message: 'a record must be a JSON object',
  column: null,
};
const neitherId: Reason = {
  code: 'missing_id',
  message: 'the record has neither user_id nor company_id',
  column: null,
};

function entityOf(object: JsonObject): Entity | null {
  if (object['user_id'] !== undefined) return 'users';
  return object['company_id'] === undefined ? null : 'companies';
}

const seen = /^\},"first_seen_at":"[\d:.TZ-]{27}","last_seen_at":"[\d:.TZ-]{27}"\}$/;
const seenLength =
  '},"first_seen_at":"2026-01-01T00:00:00.000000Z","last_seen_at":"2026-01-01T00:00:00.000000Z"}'.length;

/**
 * An exported record without its end, which is of no use here: what comes before then ends in its `metadata`, which can
 * be taken as it stands (`sourceOfMetadata`), numbers and all. Its quotes are even in number: what was no JSON before is
 * none after.
 */
function withoutSeen(line: string): string {
  const at = line.length - seenLength;
  if (!line.startsWith('},"first_seen_at"', at) || !seen.test(line.slice(at))) return line;
  return `${line.slice(0, at + 1)}}`;
}

const metadataName = '"metadata"';
/** A key that a record which says what it is may have beside its metadata. */
const eventKey = /"(?:event_|insert|source")/;
const seenKey = /"(?:first|last)_seen_at"/;

/**
 * The text of `metadata` where it is known without parsing again: its name stands once in the line (be it as a key or
 * in a text), and is the last of the record. Holds only if no key stands beside the documented ones and none was
 * renamed; the caller sees to that.
 */
function sourceOfMetadata(line: string, object: JsonObject, parsed: ParsedJson): string | null {
  if (parsed.decoded) return null;
  let last = '';
  for (const name in object) last = name;
  if (last !== 'metadata') return null;
  const hasSeen = automaticProperties.some((name) => name in object);
  return lastMetadata(line, 'event_type' in object, hasSeen);
}

/**
 * Returns `metadata` as written if it is the record's last key; null if it must be rewritten, such as for white space that COPY
 * interprets.
 */
function lastMetadata(line: string, hasKind: boolean, hasSeen: boolean): string | null {
  const at = line.indexOf(metadataName);
  if (at === -1 || line.includes(metadataName, at + 1)) return null;
  if (!line.startsWith(':', at + metadataName.length)) return null;
  // A key that comes twice counts where it came first, and may follow all the same.
  if (line.includes('"user_id"', at) || line.includes('"company', at) || line.includes('"sluice_', at))
    return null;
  if (hasKind && eventKey.test(line.slice(at))) return null;
  if (hasSeen && seenKey.test(line.slice(at))) return null;
  const source = line.slice(at + metadataName.length + 1, line.lastIndexOf('}')).trim();
  return source.includes('\t') || source.includes('\r') ? null : source;
}

/**
 * Whether the metadata of the record `text`, a byte string, are taken as they are written, where nothing stands beside the
 * documented keys, each comes once, and nothing has to be decoded. `end`: where the metadata end; `hasSeen`: it says
 * when the profile was seen.
 */
export function isMetadataTaken(text: string, end: number, hasKind: boolean, hasSeen: boolean): boolean {
  const line = withoutSeen(text);
  if (line.slice(end).trim() !== '}') return false;
  return lastMetadata(line, hasKind, hasSeen && line.length === text.length) !== null;
}
