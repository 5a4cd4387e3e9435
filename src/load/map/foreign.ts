import { named, type Sentence, say, using } from '../../base/sentence.ts';
import { automaticProperties, idColumn, isRecordKind } from '../../domain/entity.ts';
import { type Preset, presetTitles } from '../../domain/source.ts';

/*
 * Foreign records need a preset, or have the name and time of an event but no `event_type`. If they
 * contain a user's id, they could be loaded as profiles, and would overwrite properties. They are
 * therefore refused until the load specifies their kind. The messages do not suggest adding only an
 * id, because the records would then be loaded as profiles.
 */

type Members = Readonly<Record<string, unknown>>;

export interface ForeignRecords {
  readonly preset: Preset | null;
  readonly advice: Sentence;
}

const MAX_NAMES = 10_000;
const MAX_NAME_DEPTH = 3;

const eventName = /^event(?:_?(?:name|type|title|action))?$/;
const timeName = /(?:^|_)(?:time|timestamp|datetime|ts|date|at)$/;

/**
 * Returns the preset that records with these names need, or `null`. `isOwn` is true for records in
 * our format. `type` is the value of the member `type`.
 */
export type Recognise = (names: readonly string[], isOwn: boolean, type?: unknown) => Preset | null;

/**
 * Returns the advice if the columns are those of foreign records, otherwise `null`. `columns` are
 * the names after `map` has renamed the columns.
 */
export function foreignColumns(
  columns: readonly string[],
  recognise: Recognise | null,
): ForeignRecords | null {
  const isOwn =
    columns.includes('event_type') && ['event_name', 'inserted_at'].some((name) => columns.includes(name));
  const preset = recognise?.(columns, isOwn) ?? null;
  const isEvents = !columns.includes('event_type') && hasNameAndTime(columns);
  return preset === null && !isEvents ? null : { preset, advice: adviceOn(preset, 'column', columns) };
}

export function foreignRecord(record: Members, recognise: Recognise | null): ForeignRecords | null {
  const { event_type: kind, type } = record;
  const names = namesOf(record);
  const isOwn = typeof kind === 'string' && isRecordKind(kind);
  const preset = recognise?.(names, isOwn, type) ?? null;
  // The properties of a profile may have any names, so only the record's own keys can show that it
  // is a profile.
  const isProfile = Object.values(idColumn).some((name) => Object.hasOwn(record, name));
  const isEvent = (kind ?? null) === null && hasNameAndTime(isProfile ? Object.keys(record) : names);
  return preset === null && !isEvent
    ? null
    : { preset, advice: adviceOn(preset, 'key', Object.keys(record)) };
}

/** Exports of profiles, with `first_seen_at` and `last_seen_at`, do not look like events. */
function hasNameAndTime(names: readonly string[]): boolean {
  if (automaticProperties.every((name) => names.includes(name))) return false;
  return [eventName, timeName].every((form) => names.some((name) => form.test(plainName(name))));
}

function plainName(path: string): string {
  return path
    .slice(Math.max(path.lastIndexOf('.'), path.lastIndexOf('/')) + 1)
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_|_$/g, '');
}

function adviceOn(preset: Preset | null, what: 'column' | 'key', names: readonly string[]): Sentence {
  if (preset !== null)
    return say`this is an export of ${presetTitles[preset]}: load it ${using('preset', preset)}`;
  const [first = 'their_name=event_name', ...others] = exampleMap(names);
  const rest = others.flatMap((each) => say` and ${named('map', each)}`);
  return say`the records look like events, and an id alone would make profiles of them: add a ${what} event_type that says track in each record, and name those of the event, user and time event_name, user_id and inserted_at, or rename them ${using('map', first)}${rest}; if they are profiles all the same, say ${named('entity', 'users')} or ${named('entity', 'companies')}`;
}

/**
 * Example of `map` for our names that the record lacks. Omits names that a shell would have to
 * quote.
 */
function exampleMap(names: readonly string[]): string[] {
  const forms = [
    ['event_name', eventName],
    ['inserted_at', timeName],
  ] as const;
  return forms.flatMap(([ours, form]) => {
    const name = names.find((each) => /^[\w-]{1,60}$/.test(each) && form.test(plainName(each)));
    return name === undefined || names.includes(ours) ? [] : [`${name}=${ours}`];
  });
}

function namesOf(record: Members, within = '', depth = 1, names: string[] = []): string[] {
  for (const [name, value] of Object.entries(record)) {
    if (names.length === MAX_NAMES) break;
    names.push(within + name);
    if (depth < MAX_NAME_DEPTH && typeof value === 'object' && value !== null && !Array.isArray(value))
      namesOf(value as Members, `${within}${name}.`, depth + 1, names);
  }
  return names;
}
