import { type Static, Type } from 'typebox';
import { mappingPage, savedMapping, sourceMember } from '../../api/mapping.ts';
import { listOf, object } from '../../api/schema.ts';
import {
  isStorable,
  type MappingRules,
  mappingNamePattern,
  mappingNameRule,
  readColumnMap,
} from '../../domain/column-map.ts';
import type { Problem } from '../../domain/errors.ts';
import { MAX_COLUMNS, MAX_MAPPED_COLUMNS } from '../../domain/limits.ts';
import { sourceFormats } from '../../domain/source.ts';
import {
  findContradictions,
  type GivenSource,
  sourceOptionNames,
  toSourceOptions,
} from '../../domain/source-options.ts';
import {
  absentColumn,
  dropMapping,
  keepMapping,
  renderListedMapping,
  renderMapping,
  requireMapping,
} from '../../load/saved-mappings.ts';
import { listMappings } from '../../postgres/stores/mappings.ts';
import { optional, ruled, throwProblems, worded } from '../../validation.ts';
import { askedPage, keyCursor, keyPage, pageBytes, sendEnvelope, takePage } from '../page.ts';
import { optionalChoice } from '../parameters.ts';
import { lenientQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';
import { sourceFields } from '../upload/options.ts';

const list = route({
  at: 'GET /v1/mappings',
  operationId: 'listMappings',
  summary: 'List saved mappings',
  description: "Lists the environment's saved mappings, sorted by name.",
  access: 'import',
  config: pageBytes,
  query: lenientQuery(keyPage),
  answer: { description: 'A page of mappings.', headers: ['Link'], schema: mappingPage.ref },
  handle: async (call) => {
    const { db } = call.system;
    const { limit, after } = askedPage(call.query, keyCursor);
    const found = await listMappings(db, call.environment, limit + 1, after);
    const { items, next } = takePage(found, limit, ({ name }) => keyCursor.write(name));
    return sendEnvelope(call, items.map(renderListedMapping), next);
  },
});

const params = Type.Object({
  name: worded(
    Type.String({
      pattern: mappingNamePattern,
      description: 'Name of the mapping.',
      examples: ['customers'],
    }),
    `name ${mappingNameRule}`,
  ),
});

const show = route({
  at: 'GET /v1/mappings/:name',
  operationId: 'showMapping',
  summary: 'Show a saved mapping',
  description: 'Returns the options that a load with `mapping=` of this name takes from it.',
  access: 'import',
  params,
  answer: { description: 'The mapping.', schema: savedMapping.ref },
  handle: async ({ system: { db }, params: { name }, environment }) =>
    renderMapping(await requireMapping(db, environment, name)),
});

const mapField = worded(
  ruled(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      maxProperties: MAX_MAPPED_COLUMNS,
      description:
        'Names of columns or keys in the file, each with the name of the field it becomes. `{}`: the names are those of the fields.',
      examples: [{ 'Customer No': 'user_id' }],
    }),
    (map) => {
      const read = Object.keys(map).length === 0 ? {} : readColumnMap([JSON.stringify(map)]);
      return typeof read === 'string' ? read : null;
    },
  ),
  `map must be an object of at most ${MAX_MAPPED_COLUMNS} names, such as {"Their Header":"user_id"}`,
);

const mappingBody = object('The options to save. A load states or detects all others.', {
  map: mapField,
  entity: optionalChoice(
    ['users', 'companies', 'auto'],
    'entity must be users, companies or auto',
    'Kind of records. `auto`: each record tells.',
    'auto',
  ),
  column_names: optional(
    listOf(
      'Columns of the files for which it is offered, in any order: the `column_names` of an inspection.',
      ruled(Type.String(), (name) => (isStorable(name) ? null : 'holds what no name may')),
      { maxItems: MAX_COLUMNS, examples: [['Customer No', 'Name']] },
    ),
    `column_names must be at most ${MAX_COLUMNS} texts, without U+0000 and halves of surrogate pairs`,
  ),
  format: optionalChoice(
    sourceFormats,
    `format must be one of ${sourceFormats.join(', ')}`,
    'Format of the files. Default: detected from the content.',
  ),
  ...sourceFields(sourceMember),
});

function readMapping(body: Static<typeof mappingBody>): MappingRules {
  const { map, entity = 'auto', format = null, column_names = null } = body;
  const given = body as Readonly<Record<string, unknown>>;
  const source = Object.fromEntries(
    sourceOptionNames.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]),
  ) as GivenSource;
  const problems = findContradictions(toSourceOptions(source)).map(
    ({ name, what }): Problem => ({ code: 'invalid_field', message: `${name} ${what}`, details: name }),
  );
  const absent = absentColumn(map, column_names);
  if (absent !== null) {
    const message = 'map names a column that column_names does not have';
    problems.push({ code: 'invalid_field', message, details: `map: ${absent}` });
  }
  throwProblems(problems);
  return { map, entity, format, source, columnNames: column_names };
}

const save = route({
  at: 'PUT /v1/mappings/:name',
  operationId: 'saveMapping',
  summary: 'Save a mapping',
  description:
    'Saves options for loading files under a name, and replaces what has that name. Loads and inspections use it with `mapping=`; inspections of files with the same columns offer it.',
  access: 'import',
  params,
  json: {
    schema: mappingBody,
    examples: {
      customers: {
        summary: 'Files of a shop',
        value: {
          map: { 'Customer No': 'user_id' },
          column_names: ['Customer No', 'Name'],
          delimiter: 'semicolon',
        },
      },
    },
  },
  answer: { description: 'The saved mapping.', schema: savedMapping.ref },
  handle: async ({ system: { db }, params: { name }, environment, body }) =>
    renderMapping(await keepMapping(db, environment, name, readMapping(body))),
});

const remove = route({
  at: 'DELETE /v1/mappings/:name',
  operationId: 'deleteMapping',
  summary: 'Delete a saved mapping',
  description: 'Deletes the mapping. Loads that were accepted with it are not affected.',
  access: 'import',
  params,
  answer: { status: 204, description: 'The mapping is deleted.' },
  handle: async ({ system: { db }, params: { name }, environment }) => {
    await dropMapping(db, environment, name);
  },
});

export const mappingRoutes: readonly Route[] = [list, show, save, remove];
