import { Type } from 'typebox';
import { compressions, exportFormats } from '../domain/export.ts';
import { MAX_EXPORT_EMAILS, MAX_EXPORT_VALUES } from '../domain/limits.ts';

const end = (description: string) =>
  Type.Optional(Type.String({ description, examples: ['2026-11-20', '2026-11-20T12:00:00Z'] }));

const list = (description: string, maxItems = MAX_EXPORT_VALUES) =>
  Type.Optional(
    Type.Union([Type.Array(Type.String(), { maxItems }), Type.String()], {
      description: `${description} One value may stand alone.`,
    }),
  );

/** The body of a request for an export; `src/export/read-request.ts` reads it. */
export const exportRequest = Type.Object(
  {
    from: end(
      'Where the range begins: a day of UTC, or an ISO 8601 instant, UTC unless it says otherwise. Default: the beginning.',
    ),
    to: end('Where it ends: a day, which is included, or an instant, which is not. Default: now.'),
    emails: list('Who is told when the export has ended: one plain address each.', MAX_EXPORT_EMAILS),
    event_type: list(
      'What is wanted: `identify_user` or `users`, `identify_company` or `companies`, `track` or `events`; any other value is the key of an event or feature, and selects those events. Default: all three.',
    ),
    user_id: list('Only these users, their companies and their events.'),
    company_id: list('Only these companies, their users and their events.'),
    segment_id: Type.Optional(
      Type.Union([Type.String(), Type.Integer()], {
        description: 'Only the users of this segment, and what belongs to them: its id in the lookup.',
      }),
    ),
    exclusions: Type.Optional(
      Type.String({
        description:
          'What to leave out: terms `user:ID`, `company:ID`, `event:KEY`, `segment:ID`, `property:KEY`, separated by commas; `*` stands for any text, in 100 of them at most.',
        examples: ['user:test-*,property:password'],
      }),
    ),
    format: Type.Optional(Type.Enum([...exportFormats], { type: 'string', default: 'ndjson' })),
    compression: Type.Optional(
      Type.Enum([...compressions], {
        type: 'string',
        description: 'Default: gzip; none for parquet, which packs its columns itself.',
      }),
    ),
    escape_formulas: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'CSV only: cells that a spreadsheet would run as a formula are defused.',
      }),
    ),
  },
  { additionalProperties: false, description: 'Filters of different kinds are combined with AND.' },
);
