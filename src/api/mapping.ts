import { type Static, type TSchema, Type } from 'typebox';
import type { LoadEntity } from '../domain/entity.ts';
import { type SourceFormat, sourceFormats } from '../domain/source.ts';
import { type SourceOptionName, schemaOfSourceOption, sourceOptionNames } from '../domain/source-options.ts';
import { component, envelope, orNull } from './schema.ts';

/** What a mapping says of how files are written: as the options of a load. */
const sourceMembers = Object.fromEntries(
  sourceOptionNames.map((name): [string, TSchema] => [name, Type.Optional(sourceMember(name))]),
) as Record<never, TSchema>;

export function sourceMember(name: SourceOptionName): TSchema {
  const { type, ...schema } = schemaOfSourceOption(name);
  // `"header": 3` is what a person writes.
  return Type.Unsafe<unknown>({ type: name === 'header' ? ['string', 'integer'] : type, ...schema });
}

export const mappingFields = {
  name: Type.String({ description: 'What it is called.', examples: ['customers'] }),
  entity: Type.Unsafe<LoadEntity>({
    type: 'string',
    enum: ['users', 'companies', 'auto'],
    description: 'What the records are; `auto`: each says it.',
  }),
};

const instant = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-20T12:34:56.123Z'] });

export const mappingTimes = {
  saved_at: instant('When it was last saved.'),
  last_used_at: orNull(instant('When a load was last accepted with it; null: never.')),
};

export const savedMapping = component(
  'SavedMapping',
  Type.Object(
    {
      ...mappingFields,
      map: Type.Object(
        {},
        { additionalProperties: Type.String(), description: 'Their header or key → our name.' },
      ),
      format: Type.Unsafe<SourceFormat | null>({
        type: ['string', 'null'],
        enum: [...sourceFormats, null],
        description: 'How the files are written; null: the content says it.',
      }),
      ...sourceMembers,
      column_names: Type.Unsafe<string[] | null>({
        type: ['array', 'null'],
        items: { type: 'string' },
        description: 'The columns of the files that it is offered for; null: of none.',
      }),
      ...mappingTimes,
    },
    {
      additionalProperties: false,
      description: 'How files are loaded, kept under a name.',
      examples: [
        {
          name: 'customers',
          entity: 'users',
          map: { 'Customer No': 'user_id' },
          format: null,
          delimiter: 'semicolon',
          column_names: ['Customer No', 'Name'],
          saved_at: '2026-11-20T12:34:56.123Z',
          last_used_at: null,
        },
      ],
    },
  ),
);
export type SavedMapping = Static<typeof savedMapping.schema>;

export const mappingItem = component(
  'SavedMappingItem',
  Type.Object(
    {
      ...mappingFields,
      mapped: Type.Integer({ minimum: 0, description: 'Columns that its `map` names.', examples: [1] }),
      columns: orNull(
        Type.Integer({
          minimum: 0,
          description: 'Columns of the files that it is offered for; null: of none.',
          examples: [2],
        }),
      ),
      ...mappingTimes,
    },
    { additionalProperties: false, description: 'A saved mapping in a list.' },
  ),
);
export type SavedMappingItem = Static<typeof mappingItem.schema>;

export const mappingPage = envelope('SavedMappingPage', mappingItem.ref, 'Saved mappings, by name.');
export type SavedMappingPage = Static<typeof mappingPage.schema>;
