import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import { type mappingItem, mappingPage, savedMapping, sourceMember } from '../../api/mapping.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import {
  isStorable,
  type MappingRules,
  mappingNamePattern,
  mappingNameRule,
  readColumnMap,
} from '../../domain/column-map.ts';
import { DEFAULT_PAGE_SIZE, MAX_COLUMNS, MAX_MAPPED_COLUMNS, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { sourceFormats } from '../../domain/source.ts';
import {
  findContradictions,
  type GivenSource,
  type SourceOptionName,
  sourceOptionNames,
  sourceOptionProblem,
  sourceOptions,
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
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { keyPage, readKeyCursor, sendEnvelope, writeKeyCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, named, refusals } from '../schemas/answers.ts';

const query = listQuery(keyPage);

const listMappingsSchema = {
  operationId: 'listMappings',
  summary: 'List saved mappings',
  description: 'Those of the environment, by name, page by page.',
  tags: ['mappings'],
  querystring: query,
  response: {
    200: {
      description: 'A page of mappings.',
      headers: named('Link'),
      content: { 'application/json': { schema: mappingPage.ref } },
    },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;

export function listMappingsRoute(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'import', answerBytes: MAX_PAGE_BYTES },
    schema: listMappingsSchema,
  } as const;
  app.get<{ Querystring: Static<typeof query> }>('/v1/mappings', options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, cursor = '' } = request.query;
    const after = readKeyCursor(cursor);
    const found = await listMappings(system.db, environmentId(request), limit + 1, after);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return sendEnvelope(request, reply, system.config.publicUrl, {
      items: page.map((each) =>
        JSON.stringify(renderListedMapping(each) satisfies Static<typeof mappingItem.schema>),
      ),
      next: found.length > limit && last !== undefined ? writeKeyCursor(last.name) : null,
      limit,
    });
  });
}

/** In the path of a mapping. */
const mappingParameters = Type.Object({
  name: worded(
    Type.String({ pattern: mappingNamePattern, description: 'What it is called.', examples: ['customers'] }),
    `name ${mappingNameRule}`,
  ),
});

type MappingParameters = Static<typeof mappingParameters>;

const showMappingSchema = {
  operationId: 'showMapping',
  summary: 'Show a saved mapping',
  description: 'What a load with `mapping=` of this name does.',
  tags: ['mappings'],
  params: mappingParameters,
  response: {
    200: { description: 'The mapping.', content: { 'application/json': { schema: savedMapping.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showMapping(app: FastifyInstance, { db }: System): void {
  const options = { config: { scope: 'import' }, schema: showMappingSchema } as const;
  app.get<{ Params: MappingParameters }>('/v1/mappings/:name', options, async (request, reply) => {
    const mapping = await requireMapping(db, environmentId(request), request.params.name);
    return reply.send(renderMapping(mapping) satisfies Static<typeof savedMapping.schema>);
  });
}

function sourceField(name: SourceOptionName): TSchema {
  const says = `${name} ${sourceOptions[name].rule}`;
  const problem = (value: unknown) => (sourceOptionProblem(name, value) === null ? null : says);
  return Type.Optional(worded(ruled(sourceMember(name), problem), says));
}

const mapField = worded(
  ruled(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      maxProperties: MAX_MAPPED_COLUMNS,
      description: 'Their header or key → our name; `{}`: the names are ours.',
      examples: [{ 'Customer No': 'user_id' }],
    }),
    (map) => {
      const read = Object.keys(map).length === 0 ? {} : readColumnMap([JSON.stringify(map)]);
      return typeof read === 'string' ? read : null;
    },
  ),
  `map must be an object of at most ${MAX_MAPPED_COLUMNS} names, such as {"Their Header":"user_id"}`,
);

const body = worded(
  Type.Object(
    {
      map: mapField,
      entity: Type.Optional(
        worded(
          Type.Enum(['users', 'companies', 'auto'], {
            type: 'string',
            default: 'auto',
            description: 'What the records are; `auto`: each says it.',
          }),
          'entity must be users, companies or auto',
        ),
      ),
      column_names: Type.Optional(
        worded(
          Type.Array(
            ruled(Type.String(), (name) => (isStorable(name) ? null : 'holds what no name may')),
            {
              maxItems: MAX_COLUMNS,
              description:
                'The columns of the files that it is to be offered for, in any order: `column_names` of an inspection.',
              examples: [['Customer No', 'Name']],
            },
          ),
          `column_names must be at most ${MAX_COLUMNS} texts, without U+0000 and halves of surrogate pairs`,
        ),
      ),
      format: Type.Optional(
        worded(
          Type.Enum([...sourceFormats], {
            type: 'string',
            description: 'How the files are written. Default: the content says it.',
          }),
          `format must be one of ${sourceFormats.join(', ')}`,
        ),
      ),
      ...(Object.fromEntries(sourceOptionNames.map((name) => [name, sourceField(name)])) as Record<
        never,
        TSchema
      >),
    },
    {
      additionalProperties: false,
      description: 'What it says; of the rest each load says it, or it is found out.',
    },
  ),
  { unknown: (name) => `${JSON.stringify(name.slice(0, 100))} is nothing that a mapping says` },
);

const findProblems = compileSchema(body);

/** @throws InputError with everything that is wrong. */
function readMapping(value: Readonly<Record<string, unknown>>): MappingRules {
  throwProblems(findProblems(value));
  const { map, entity = 'auto', format = null, column_names = null } = value as Static<typeof body>;
  const source = Object.fromEntries(
    sourceOptionNames.filter((name) => value[name] !== undefined).map((name) => [name, value[name]]),
  ) as GivenSource;
  const conflicts = findContradictions(toSourceOptions(source));
  const absent = absentColumn(map, column_names);
  throwProblems([
    ...conflicts.map(({ name, what }) => ({
      code: 'invalid_field' as const,
      message: `${name} ${what}`,
      details: name,
    })),
    ...(absent === null
      ? []
      : [
          {
            code: 'invalid_field' as const,
            message: 'map names a column that column_names does not have',
            details: `map: ${absent}`,
          },
        ]),
  ]);
  return { map, entity, format, source, columnNames: column_names };
}

const saveMappingSchema = {
  operationId: 'saveMapping',
  summary: 'Save a mapping',
  description:
    'Keeps under a name how files are loaded, in the place of what has that name. Loads and inspections name it with `mapping=`; inspections of files with the same columns offer it.',
  tags: ['mappings'],
  params: mappingParameters,
  body: {
    content: {
      'application/json': withExamples(body, {
        customers: {
          summary: 'Files of a shop',
          value: {
            map: { 'Customer No': 'user_id' },
            column_names: ['Customer No', 'Name'],
            delimiter: 'semicolon',
          },
        },
      }),
    },
  },
  response: {
    200: { description: 'It is saved.', content: { 'application/json': { schema: savedMapping.ref } } },
    ...jobRefusals(
      'invalid_json',
      'missing_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** In a scope with `addJsonBody`. */
export function saveMappingRoute(scope: FastifyInstance, { db }: System): void {
  const options = { config: { scope: 'import' }, schema: saveMappingSchema } as const;
  scope.put<{ Params: MappingParameters }>('/v1/mappings/:name', options, async (request, reply) => {
    const rules = readMapping(readJsonObject(bodyBytes(request)));
    const saved = await keepMapping(db, environmentId(request), request.params.name, rules);
    return reply.send(renderMapping(saved) satisfies Static<typeof savedMapping.schema>);
  });
}

const deleteMappingSchema = {
  operationId: 'deleteMapping',
  summary: 'Delete a saved mapping',
  description: 'Loads that were accepted with it go on as they were asked for.',
  tags: ['mappings'],
  params: mappingParameters,
  response: { 204: { type: 'null', description: 'It is gone.' }, ...jobRefusals() },
} satisfies FastifySchema;

export function deleteMapping(app: FastifyInstance, { db }: System): void {
  const options = { config: { scope: 'import' }, schema: deleteMappingSchema } as const;
  app.delete<{ Params: MappingParameters }>('/v1/mappings/:name', options, async (request, reply) => {
    await dropMapping(db, environmentId(request), request.params.name);
    return reply.code(204).send();
  });
}
