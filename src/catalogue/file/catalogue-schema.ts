import { catalogueField } from './catalogue-field.ts';

/** The JSON Schema of a catalogue file, for editors: docs/schemas/catalogue.schema.json. */
export function catalogueSchema(): object {
  const { properties, ...rest } = catalogueField.schema;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://sluice.invalid/schemas/catalogue.schema.json',
    title: 'Catalogue of sluice',
    ...rest,
    properties: { $schema: { type: 'string' }, ...(properties as object) },
  };
}
