import { type TSchema, Type } from 'typebox';

/** The options of an upload, alike as parameters of the query and as fields of a form. */
export function uploadOptions(entities: readonly string[]): Record<string, TSchema> {
  return {
    entity: Type.Optional(
      Type.Enum([...entities], {
        type: 'string',
        description: 'What the records are. In a CSV the header tells, unless this does.',
      }),
    ),
    map: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Which of their headers or keys is which of our names, as `Their Header=user_id`; may come several times, or with commas between the pairs.',
        examples: [['Customer No=user_id', 'Mail=email']],
      }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: 'Reads and checks everything, and writes nothing.' }),
    ),
    max_errors: Type.Optional(
      Type.String({
        pattern: '^(\\d{1,15}|\\d{1,3}(\\.\\d{1,6})?%)$',
        description: 'More refused records than this, a number or a share, fail the job.',
        examples: ['5%'],
      }),
    ),
    if_duplicate: Type.Optional(
      Type.Enum(['load', 'skip', 'reject'], {
        type: 'string',
        default: 'load',
        description:
          'What to do if the same bytes were loaded before: load them again, answer with the job that did, or refuse with `duplicate_file`.',
      }),
    ),
    format: Type.Optional(
      Type.Enum(['csv', 'ndjson', 'json'], {
        type: 'string',
        description: 'Default: by content, name and media type. In a form it must come before the file.',
      }),
    ),
    filename: Type.Optional(Type.String({ description: 'The name of the file, for the job record.' })),
  };
}
