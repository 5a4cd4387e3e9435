import { Type } from 'typebox';
import { MAX_READ_AS_COLUMNS } from '../domain/limits.ts';
import { sourceFormats } from '../domain/source.ts';
import { orNull } from './schema.ts';

const exampleColumns = ['user_id', 'name', 'plan'];

const exampleNote = 'Lines 1 to 2 stand before the header and were passed over.';

const csvReadAs = Type.Object(
  {
    delimiter: Type.String({
      description: 'Between the cells; `blanks`: any number of blanks.',
      examples: [';'],
    }),
    quote: Type.String({ description: 'Round cells; empty: nothing.', examples: ['"'] }),
    escape: Type.String({
      description:
        'Makes an ordinary character of a quote: the quote itself, doubled, or a backslash; empty: nothing.',
      examples: ['"'],
    }),
    comment: Type.String({
      description: 'Lines that start with it are no records; empty: none.',
      examples: [''],
    }),
    nulls: Type.Array(Type.String(), {
      description: 'Cells without quotes that mean the same as an empty one.',
      examples: [[]],
    }),
    ragged: Type.Enum(['refuse', 'pad'], {
      type: 'string',
      description: 'What becomes of records with fewer or more cells than the header.',
    }),
    header_line: orNull(
      Type.Integer({
        minimum: 1,
        description: 'Line on which the header starts; null: there is none.',
        examples: [3],
      }),
    ),
    columns: Type.Array(Type.String(), {
      maxItems: MAX_READ_AS_COLUMNS,
      description: `Names of the first ${MAX_READ_AS_COLUMNS} columns, as \`map\` can name them. An inspection lists all columns.`,
      examples: [exampleColumns],
    }),
    column_count: Type.Integer({
      minimum: 1,
      description: 'The number of columns in the file.',
      examples: [exampleColumns.length],
    }),
  },
  {
    additionalProperties: false,
    description: 'How the records of a CSV are written; null for other formats.',
  },
);

export const readAs = Type.Object(
  {
    format: Type.Enum([...sourceFormats], {
      type: 'string',
      description: 'What the file is.',
      examples: ['csv'],
    }),
    encoding: orNull(
      Type.String({
        description: 'The encoding of the text; null for a file that is none.',
        examples: ['windows-1252'],
      }),
    ),
    csv: orNull(csvReadAs),
    sheet: orNull(
      Type.String({ description: 'The sheet of a workbook; null for other files.', examples: [null] }),
    ),
    member: orNull(
      Type.String({ description: 'The file in a ZIP archive; null for other files.', examples: [null] }),
    ),
    notes: Type.Array(Type.String(), {
      description: 'What a person should know of it, one sentence each.',
      examples: [[exampleNote]],
    }),
  },
  {
    additionalProperties: false,
    description: 'How the file was read: what was said of it, and what was found.',
  },
);
