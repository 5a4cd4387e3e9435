import { expressionBuilder } from 'kysely';
import { type TSchema, Type } from 'typebox';
import { FinalFailure, type Problem } from '../base/errors.ts';
import { readRangeEnd } from '../base/instant.ts';
import { MAX_EVENT_NAME_BYTES, MAX_ID_BYTES } from '../base/limits.ts';
import { isMailAddress } from '../base/mail-address.ts';
import { compileSchema, ruled, textProblem, worded } from '../base/validation.ts';
import {
  compressions,
  type ExportRequest,
  exportFormats,
  exportLayouts,
  isCursor,
  lossyFormats,
  spreadsheetFormats,
} from '../domain/export.ts';
import { optionsByName } from '../domain/option-table.ts';
import type { Database } from '../postgres/database.ts';
import type { DB } from '../postgres/schema.ts';
import type { Filter, SegmentTest } from './filter.ts';
import type { ExportOption, ExportSeam } from './seam.ts';
import { excludedSegments, segmentOption } from './segments.ts';

const MAX_EXPORT_VALUES = 10_000;
const MAX_EXPORT_EMAILS = 20;

function end(name: 'from' | 'to', description: string) {
  const message = `${name} must be a day such as 2026-11-20, or an ISO 8601 instant such as 2026-11-20T12:00:00Z`;
  const text = Type.String({ description, examples: ['2026-11-20', '2026-11-20T12:00:00Z'] });
  return Type.Optional(
    worded(
      ruled(text, (value) => (readRangeEnd(value) === null ? message : null)),
      { wording: { code: 'invalid_date', message } },
    ),
  );
}

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
    return problem === null ? null : `A value of ${name} ${problem}`;
  });
  const items = worded(item, `A value of ${name} is not a string`);
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

const notACursor = 'since must be the cursor of an earlier export, as its manifest has it';

/** Null and empty fields count as missing. */
export const exportRequest = (options: Readonly<Record<never, TSchema>>) =>
  Type.Object(
    {
      from: end(
        'from',
        'Inclusive start of the range: a day (UTC) or an ISO 8601 instant (UTC unless it has an offset). Default: the beginning of the data. `start_date` is another name.',
      ),
      to: end(
        'to',
        'End of the range: a day, inclusive, or an instant, exclusive. Default: no end. `end_date` is another name.',
      ),
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
          { wording: { code: 'invalid_cursor', message: notACursor } },
        ),
      ),
      include_removed: Type.Optional(
        worded(
          Type.Boolean({
            default: false,
            description: `With \`since\`: also export what was removed. A removed profile is a row with \`removed: true\`, which loads refuse: delete these profiles from the copy first. A removed property is null. Not for ${lossyFormats} or streams; the only other filters allowed are \`event_type\` and \`exclusions\` of users, events and properties.`,
          }),
          'include_removed is true or false',
        ),
      ),
      wait_for_loads: Type.Optional(
        worded(
          Type.Boolean({
            default: false,
            description:
              'Begin once the loads that were accepted before have ended; the export is `queued` until then. Loads that are held are not waited for. In a schedule the default is true.',
          }),
          'wait_for_loads is true or false',
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
        'Data to export: `identify_user` or `users`, `identify_company` or `companies`, `events` (all of them) or one kind of events: `track`, `page_view`, `interaction`, `track_feature`, `session_start`, with those of that name; any other value is the key of an event or feature, and selects those events. Default: users, companies and events. `event_types` is another name.',
      ),
      user_id: values('user_id', MAX_ID_BYTES, 'Only export these users, their companies and their events.'),
      company_id: values(
        'company_id',
        MAX_ID_BYTES,
        'Only export these companies, their users and their events.',
      ),
      ...options,
      exclusions: Type.Optional(
        worded(
          Type.String({
            description:
              'Data to leave out: terms `user:ID`, `company:ID`, `event:KEY`, `segment:ID`, `property:KEY`, separated by commas. At most 100 terms may contain `*`, which matches any text.',
            examples: ['user:test-*,property:password'],
          }),
          'exclusions must be a string such as user:u1,event:page_*',
        ),
      ),
      layout: oneOf('layout', exportLayouts, {
        description:
          '`datasets`: files of users, companies and events. `stream`: one file of rows `event_type`, `user_id`, `company_id`, `inserted_at`, `event_id`, `event_name`, `source`, `metadata` of all kinds, in order of time, each with all columns; it loads back. Default: that of the environment, which is `datasets` unless set.',
      }),
      format: oneOf('format', [...exportFormats, 'json'], {
        default: 'ndjson',
        description: 'Format of the files. `json` means `ndjson`.',
      }),
      compression: oneOf('compression', compressions, {
        description:
          'Compression of the files. Default: gzip; none for parquet, which compresses its content itself.',
      }),
      escape_formulas: Type.Optional(
        worded(
          Type.Boolean({
            default: true,
            description: `${spreadsheetFormats} only: prefixes cells that a spreadsheet would run as a formula with an apostrophe.`,
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

const coreOptions: ExportSeam = { options: { segment_id: segmentOption } };

const eb = expressionBuilder<DB>();

type OptionValues = ExportRequest['options'];

/** All options that select users, including those of capabilities, and the schema of requests. */
export class ExportOptions {
  readonly schema: ReturnType<typeof exportRequest>;
  readonly #options: ReadonlyMap<string, ExportOption>;
  #findProblems: ((body: unknown) => Problem[]) | undefined;

  constructor(seams: readonly ExportSeam[]) {
    this.#options = optionsByName([coreOptions, ...seams]);
    this.schema = exportRequest(this.#schemas());
  }

  findProblems(body: unknown): Problem[] {
    // The schema is compiled on first use, because most commands do not read a request.
    this.#findProblems ??= compileSchema(this.schema);
    return this.#findProblems(body);
  }

  get entries(): readonly (readonly [name: string, option: ExportOption])[] {
    return [...this.#options];
  }

  read(fields: Readonly<Record<string, unknown>>, problems: Problem[]): OptionValues {
    const values = this.entries.flatMap(([name, option]) => {
      const given = fields[name];
      const value = given === undefined ? null : option.read(given, problems);
      return value === null ? [] : [[name, value] as const];
    });
    return Object.fromEntries(values);
  }

  async findUnknown(db: Database, environmentId: number, values: OptionValues): Promise<readonly Problem[]> {
    const problems: Problem[] = [];
    for (const [name, value] of Object.entries(values)) {
      problems.push(...((await this.#option(name).findProblems?.(db, environmentId, value)) ?? []));
    }
    return problems;
  }

  /**
   * Returns the conditions for the users that a request selects or excludes. Periods such as the
   * last seven days end at `now`.
   * @throws FinalFailure if a segment or an option no longer exists
   */
  async selectUsers(
    db: Database,
    environmentId: number,
    { options, exclusions }: Pick<ExportRequest, 'options' | 'exclusions'>,
    now = new Date(),
  ): Promise<Pick<Filter, 'segment' | 'excludedSegments'>> {
    const scope = { environmentId, now };
    const tests: SegmentTest[] = [];
    for (const [name, value] of Object.entries(options)) {
      tests.push(await this.#option(name).select(db, scope, value));
    }
    return {
      segment: tests.length === 0 ? null : (user) => eb.and(tests.map((isIn) => isIn(user))),
      excludedSegments: await excludedSegments(db, scope, exclusions),
    };
  }

  /**
   * Finds an option. An option that this build lacks is an error, because ignoring it would export
   * more than was requested.
   */
  #option(name: string): ExportOption {
    const option = this.#options.get(name);
    if (option !== undefined) return option;
    throw new FinalFailure('invalid_field', `This build of sluice has no option ${name}`);
  }

  #schemas(): Readonly<Record<never, TSchema>> {
    return Object.fromEntries(this.entries.map(([name, { schema }]) => [name, Type.Optional(schema)]));
  }
}
