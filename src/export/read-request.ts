import { type Static, type TSchema, Type } from 'typebox';
import type { Problem } from '../domain/errors.ts';
import {
  compressions,
  type Exclusion,
  type ExportRequest,
  type ExportWarning,
  exclusionKinds,
  exportFormatFacts,
  exportFormats,
  exportLayouts,
  isCursor,
  selectEvents,
} from '../domain/export.ts';
import { type RangeEnd, readRangeEnd } from '../domain/instant.ts';
import {
  MAX_EVENT_NAME_BYTES,
  MAX_EXCLUSION_PATTERNS,
  MAX_EXCLUSIONS,
  MAX_EXPORT_EMAILS,
  MAX_EXPORT_VALUES,
  MAX_ID_BYTES,
  MAX_REQUEST_PROBLEMS,
} from '../domain/limits.ts';
import { isMailAddress } from '../domain/notification.ts';
import { compileSchema, ruled, textProblem, worded } from '../validation.ts';

/* The request of an export: the schema of its body, and the checks that no schema can express. */

function end(name: 'from' | 'to', description: string) {
  const message = `${name} must be a day such as 2026-11-20, or an ISO 8601 instant such as 2026-11-20T12:00:00Z`;
  const text = Type.String({ description, examples: ['2026-11-20', '2026-11-20T12:00:00Z'] });
  return Type.Optional(
    worded(
      ruled(text, (value) => (readRangeEnd(value) === null ? message : null)),
      { says: { code: 'invalid_date', message } },
    ),
  );
}

/** A list of texts. A single text stands for a list of one. */
function list(items: TSchema, tooMany: string, description: string, maxItems = MAX_EXPORT_VALUES) {
  const many = worded(Type.Array(items, { maxItems }), tooMany);
  return Type.Optional(
    Type.Union([many, Type.String()], {
      description: `${description} A single value may be given without an array.`,
    }),
  );
}

function values(name: string, maxBytes: number, description: string) {
  const item = ruled(Type.String(), (text) => {
    const problem = textProblem(text, maxBytes);
    // PostgreSQL takes no such text.
    return problem === null ? null : `A value of ${name} ${problem}`;
  });
  const items = worded(item, `A value of ${name} is no string`);
  return list(items, `${name} may list ${MAX_EXPORT_VALUES} values`, description);
}

const notPlain = 'Each of emails is one plain address such as ada@example.com';
const address = worded(
  ruled(Type.String(), (text) => (isMailAddress(text) ? null : notPlain)),
  notPlain,
);

const oneOf = <const T extends string>(name: string, allowed: readonly T[], options: object) =>
  Type.Optional(
    worded(
      Type.Enum([...allowed], { type: 'string', ...options }),
      `${name} is one of ${allowed.join(', ')}`,
    ),
  );

const notASegmentId = 'segment_id is a string or an integer';

const notACursor = 'since must be the cursor of an earlier export, as its manifest has it';

/** The body of a request for an export. Null and empty fields are as those that are left out. */
export const exportRequest = Type.Object(
  {
    from: end(
      'from',
      'Inclusive start of the range: a day (UTC) or an ISO 8601 instant (UTC unless it has an offset). Default: the beginning of the data.',
    ),
    to: end('to', 'End of the range: a day, inclusive, or an instant, exclusive. Default: no end.'),
    since: Type.Optional(
      worded(
        ruled(
          Type.String({
            description:
              'Only export what was written since this cursor, the `cursor` of an earlier export: changed profiles and added events, exactly once from export to export. Use the same filters, and no `to`.',
            examples: ['7310:7315:7312'],
          }),
          (value) => (isCursor(value) ? null : notACursor),
        ),
        { says: { code: 'invalid_cursor', message: notACursor } },
      ),
    ),
    include_removed: Type.Optional(
      worded(
        Type.Boolean({
          default: false,
          description:
            'With `since`: also export what was removed. A removed profile is a row with `removed: true`, a removed property is null. Loading NDJSON of this kind makes a copy equal. Of whole kinds of data, and not as CSV: besides `event_type`, only `exclusions` of users, events and properties go with it.',
        }),
        'include_removed is true or false',
      ),
    ),
    emails: list(
      address,
      `emails may list ${MAX_EXPORT_EMAILS} addresses`,
      'E-mail addresses to notify when the export ends.',
      MAX_EXPORT_EMAILS,
    ),
    event_type: values(
      'event_type',
      MAX_EVENT_NAME_BYTES,
      'Data to export: `identify_user` or `users`, `identify_company` or `companies`, `events` (all of them) or one kind of events: `track`, `page_view`; any other value is the key of an event or feature, and selects those events. `interaction`, `track_feature` and `session_start` select events of that name. Default: users, companies and events.',
    ),
    user_id: values('user_id', MAX_ID_BYTES, 'Only export these users, their companies and their events.'),
    company_id: values(
      'company_id',
      MAX_ID_BYTES,
      'Only export these companies, their users and their events.',
    ),
    segment_id: Type.Optional(
      worded(
        Type.Union([Type.String(), Type.Integer()], {
          description:
            'Only export the users of this segment, their companies and their events. The ID is that of the segment lookup.',
        }),
        notASegmentId,
      ),
    ),
    exclusions: Type.Optional(
      worded(
        Type.String({
          description:
            'Data to leave out: terms `user:ID`, `company:ID`, `event:KEY`, `segment:ID`, `property:KEY`, separated by commas; `*` stands for any text, in 100 of them at most.',
          examples: ['user:test-*,property:password'],
        }),
        'exclusions must be a string such as user:u1,event:page_*',
      ),
    ),
    layout: oneOf('layout', exportLayouts, {
      default: 'datasets',
      description:
        '`datasets`: files of users, companies and events. `stream`: one file of rows `event_type`, `user_id`, `company_id`, `inserted_at`, `event_name`, `source`, `metadata` of all kinds, in order of time; it loads back.',
    }),
    format: oneOf('format', [...exportFormats, 'json'], {
      default: 'ndjson',
      description: 'Format of the files. `json` means `ndjson`.',
    }),
    compression: oneOf('compression', compressions, {
      description:
        'Compression of the files. Default: gzip; none for parquet and avro, which compress their content themselves.',
    }),
    escape_formulas: Type.Optional(
      worded(
        Type.Boolean({
          default: true,
          description:
            'CSV only: prefixes cells that a spreadsheet would run as a formula with an apostrophe.',
        }),
        'escape_formulas is true or false',
      ),
    ),
  },
  {
    additionalProperties: true,
    description:
      'Filters of different kinds are combined with AND. Unknown fields are ignored and named in `warnings`.',
  },
);

const findProblems = compileSchema(exportRequest);

/** A request as far as it can be read without looking anything up. */
export interface ReadRequest {
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  /** The types as given; names among them are to be looked up. */
  readonly eventTypes: readonly string[];
  readonly warnings: readonly ExportWarning[];
  /** Nobody is to use the request unless there are none. */
  readonly problems: Problem[];
}

export const noSuchSegment =
  'There is no such segment; the lookup of segments lists those there are, and `sluice definitions apply FILE` makes them: docs/definitions.md';

/** Reads what an export is asked for, and finds everything that is wrong with it. */
export function readRequest(body: Readonly<Record<string, unknown>>, now = new Date()): ReadRequest {
  const given = plain(body);
  const problems = findProblems(given);
  const fields = withoutWrong(given, problems);
  const eventTypes = distinct(fields.event_type);
  const format = fields.format === 'json' ? 'ndjson' : (fields.format ?? 'ndjson');
  const { isPackedInside } = exportFormatFacts[format];
  const { layout = 'datasets', compression = isPackedInside ? 'none' : 'gzip' } = fields;
  if (isPackedInside && compression === 'gzip') {
    problems.push(wrong(`Files of ${format} are compressed inside; leave compression out`, 'compression'));
  }
  const request: ExportRequest = {
    ...readRange(fields.from, fields.to, now, problems),
    since: fields.since ?? null,
    includeRemoved: fields.include_removed ?? false,
    layout,
    ...selectEvents(eventTypes),
    userIds: distinct(fields.user_id),
    companyIds: distinct(fields.company_id),
    segmentId: readSegmentId(fields.segment_id, problems),
    exclusions: readExclusions(fields.exclusions ?? '', problems),
    format,
    compression,
    escapeFormulas: fields.escape_formulas ?? true,
  };
  problems.push(...findUntold(request));
  const emails = distinct(fields.emails);
  const warnings = findIgnored(given);
  return { request, emails, eventTypes, warnings, problems: problems.slice(0, MAX_REQUEST_PROBLEMS) };
}

/** Names of fields that are none of ours, as far as anybody reads them. */
function findIgnored(given: Readonly<Record<string, unknown>>): ExportWarning[] {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(exportRequest.properties, name));
  return unknown
    .slice(0, MAX_REQUEST_PROBLEMS)
    .map((name) => ({ message: 'There is no such field; it was ignored', details: printable(name) }));
}

/** Postgres takes no U+0000. */
function printable(name: string): string {
  return shorten(name.replaceAll('\0', '\ufffd'));
}

const lists = ['emails', 'event_type', 'user_id', 'company_id'] as const;
type Lists = { readonly [name in (typeof lists)[number]]?: readonly string[] };
type Fields = Omit<Static<typeof exportRequest>, keyof Lists> & Lists;

/** Lists as lists, and numbers in them as their digits, as in bulk data; what says nothing is left out. */
function plain(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(body).filter(
    ([name, value]) => value !== null && value !== undefined && (value !== '' || name === 'escape_formulas'),
  );
  return Object.fromEntries(
    given.map(([name, value]) => {
      if (lists.some((each) => each === name)) return [name, [value].flat().map(digits)];
      const isTerms = name === 'exclusions' && Array.isArray(value) && value.every(isText);
      return [name, isTerms ? value.join(',') : value];
    }),
  );
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function digits(item: unknown): unknown {
  return typeof item === 'number' && Number.isSafeInteger(item) ? String(item) : item;
}

/** The fields that are right, to find out what else is wrong; none of a body that is wrong all over. */
function withoutWrong(given: Readonly<Record<string, unknown>>, problems: readonly Problem[]): Fields {
  if (problems.length >= MAX_REQUEST_PROBLEMS) return {};
  const places = new Set(problems.map(({ details }) => details));
  const right = Object.entries(given).filter(([name]) => !places.has(name));
  return Object.fromEntries(
    right.map(([name, value]) => [
      name,
      Array.isArray(value) ? value.filter((_, index) => !places.has(`${name}[${index}]`)) : value,
    ]),
  );
}

function distinct(texts: readonly string[] = []): string[] {
  return [...new Set(texts)];
}

function readSegmentId(value: string | number | undefined, problems: Problem[]): number | null {
  if (value === undefined) return null;
  const id = isText(value) && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id;
  problems.push(
    isText(value)
      ? { code: 'unknown_segment', message: noSuchSegment, details: 'segment_id' }
      : wrong(notASegmentId, 'segment_id'),
  );
  return null;
}

/** `from` included, `to` excluded. */
interface Range {
  readonly from: string | null;
  readonly to: string | null;
}

/** Both ends: a whole day of UTC each, or an instant. Without `to` there is no end. */
function readRange(from: string | undefined, to: string | undefined, now: Date, problems: Problem[]): Range {
  const [begin, end] = [readRangeEnd(from), readRangeEnd(to)];
  const until = end?.after ?? now.toISOString().replace('Z', '000Z');
  if (begin !== null && isReversed(begin, end, until)) {
    const message = 'from lies after to, or after this moment where there is no to';
    problems.push({ code: 'invalid_range', message, details: 'from' });
  }
  return { from: begin?.start ?? null, to: end?.after ?? null };
}

function isReversed(begin: RangeEnd, end: RangeEnd | null, until: string): boolean {
  if (begin.start < until) return false;
  // Two equal instants hold nothing between them, but are in order; a day never equals the end of another.
  return !(end !== null && !end.isDay && begin.start === until);
}

/** Finds what does not go with removals: a profile that leaves a filter is not removed, and stays in the copy. */
function findUntold({ includeRemoved, from, to, ...request }: ExportRequest): Problem[] {
  if (!includeRemoved) return [];
  const { userIds, companyIds, segmentId, exclusions, format, layout } = request;
  const filters = {
    from: from !== null,
    to: to !== null,
    user_id: userIds.length > 0,
    company_id: companyIds.length > 0,
    segment_id: segmentId !== null,
    exclusions: exclusions.some(({ kind }) => kind === 'company' || kind === 'segment'),
    format: format === 'csv',
    layout: layout !== 'datasets',
  };
  return Object.entries(filters)
    .filter(([, isGiven]) => isGiven)
    .map(([name]) =>
      wrong(`include_removed cannot tell all that was removed with this ${name}; leave one out`, name),
    );
}

/** `user:ID, event:KEY, segment:ID`: reads every term, and notes those that are none. */
function readExclusions(text: string, problems: Problem[]): Exclusion[] {
  const given = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '');
  if (given.length > MAX_EXCLUSIONS) {
    problems.push(wrong(`exclusions may have ${MAX_EXCLUSIONS} terms`, 'exclusions'));
    return [];
  }
  if (given.filter((term) => term.includes('*')).length > MAX_EXCLUSION_PATTERNS) {
    problems.push(wrong(`exclusions may have ${MAX_EXCLUSION_PATTERNS} terms with a *`, 'exclusions'));
    return [];
  }
  return given.flatMap((term) => readTerm(term, problems) ?? []);
}

/** An id may hold colons: the first one divides. */
function readTerm(term: string, problems: Problem[]): Exclusion | null {
  const [, name = term, given = ''] = /^([^:]*):(.*)$/s.exec(term) ?? [];
  const kind = exclusionKinds.find((each) => each === name.trim());
  const pattern = given.trim();
  const problem = termProblem(kind, pattern);
  if (problem !== null) problems.push(wrong(problem, `exclusions: ${shorten(term)}`));
  return kind === undefined || problem !== null ? null : { kind, pattern: pattern.replace(/\*+/g, '*') };
}

function termProblem(kind: Exclusion['kind'] | undefined, pattern: string): string | null {
  if (kind === undefined) {
    return `A term of exclusions is one of ${exclusionKinds.map((each) => `${each}:…`).join(', ')}`;
  }
  // A pattern is as long as what it is to match, with room for a star at both ends.
  const reason = textProblem(pattern, MAX_ID_BYTES + 2);
  if (reason !== null) return `What follows ${kind}: ${reason}`;
  const isNoId = kind === 'segment' && !/^[\d*]+$/.test(pattern);
  return isNoId ? 'A segment is named by its id, from the lookup of segments' : null;
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text.toWellFormed();
}

function wrong(message: string, details: string): Problem {
  return { code: 'invalid_field', message, details };
}
