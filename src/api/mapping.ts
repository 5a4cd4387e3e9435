import { type TSchema, Type } from 'typebox';
import { sourceFormats } from '../domain/source.ts';
import { type SourceOptionName, schemaOfSourceOption, sourceOptionNames } from '../domain/source-options.ts';
import { choice, choiceOrNull, count, defineRecord, envelope, orNull, text, texts, time } from './schema.ts';

const exampleTime = '2026-11-20T12:34:56.123Z';

export function sourceMember(name: SourceOptionName): TSchema {
  const { type, ...schema } = schemaOfSourceOption(name);
  // A person writes `"header": 3`.
  return Type.Unsafe<unknown>({ type: name === 'header' ? ['string', 'integer'] : type, ...schema });
}

const sourceMembers = Object.fromEntries(
  sourceOptionNames.map((name): [string, TSchema] => [name, Type.Optional(sourceMember(name))]),
) as Record<never, TSchema>;

const mappingFields = {
  name: text('Name of the mapping.', 'customers'),
  entity: choice(['users', 'companies', 'auto'], 'Kind of records. `auto`: each record tells.'),
};

const mappingTimes = {
  saved_at: time('When it was last saved.', exampleTime),
  last_used_at: orNull(time('When a load was last accepted with it. Null if never.', exampleTime)),
};

export const savedMapping = defineRecord('SavedMapping', 'Saved instructions for loading files.', {
  ...mappingFields,
  map: Type.Object(
    {},
    {
      additionalProperties: Type.String(),
      description: 'Names of columns or keys in the file, each with the name of the field it becomes.',
      examples: [{ 'Customer No': 'user_id' }],
    },
  ),
  format: choiceOrNull(sourceFormats, 'Format of the files. Null if it is detected.'),
  ...sourceMembers,
  column_names: orNull(
    texts('Columns of the files for which it is offered. Null if it is never offered.', [
      'Customer No',
      'Name',
    ]),
  ),
  ...mappingTimes,
});

const mappingItem = defineRecord('SavedMappingItem', 'A saved mapping, as lists show it.', {
  ...mappingFields,
  mapped: count('Number of columns that its `map` names.', 1),
  columns: orNull(
    count('Number of columns of the files for which it is offered. Null if it is never offered.', 2),
  ),
  ...mappingTimes,
});

export const mappingPage = envelope('SavedMappingPage', mappingItem.ref, 'Saved mappings, sorted by name.');
