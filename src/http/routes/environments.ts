import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { environmentRecord, settingRecord } from '../../api/environment.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { createEnvironment, listEnvironments } from '../../postgres/stores/environments.ts';
import { compileSchema, throwProblems, worded } from '../../validation.ts';
import { requireAdmin } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { refusals } from '../schemas/answers.ts';

const body = Type.Object(
  {
    name: worded(
      Type.String({ description: '1 to 63 of a-z, 0-9, _ and -, the first a letter or digit.' }),
      'name is a text',
    ),
  },
  { additionalProperties: false, description: 'What it is called.' },
);

const findProblems = compileSchema(body);

const createEnvironmentSchema = {
  operationId: 'createEnvironment',
  summary: 'Make an environment',
  description:
    'A tenant: its profiles, jobs and keys are unreachable from any other. For a session of the console that was begun with ADMIN_KEY, or by a link of the command line.',
  tags: ['operations'],
  body: {
    content: {
      'application/json': withExamples(body, { staging: { summary: 'One', value: { name: 'staging' } } }),
    },
  },
  response: {
    201: { description: 'It is made.', content: { 'application/json': { schema: environmentRecord.ref } } },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** As `sluice env create`. */
export function createEnvironmentRoute(scope: FastifyInstance, { db }: System): void {
  const options = { config: { scope: 'any' }, schema: createEnvironmentSchema } as const;
  scope.post('/v1/environments', options, async (request, reply) => {
    requireAdmin(request);
    const wish = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(wish));
    const { name, appToken } = await createEnvironment(db, (wish as Static<typeof body>).name);
    return reply.code(201).send({ name, app_token: appToken });
  });
}

const admin = 'For a session of the console that was begun with ADMIN_KEY, or by a link of the command line.';

const showSettingsSchema = {
  operationId: 'showSettings',
  summary: 'Show the settings in force',
  description: `Of the server that answers, without secrets. ${admin}`,
  tags: ['operations'],
  response: {
    200: {
      description: 'All of them.',
      content: { 'application/json': { schema: Type.Array(settingRecord.ref) } },
    },
    ...refusals(),
  },
} satisfies FastifySchema;

const listEnvironmentsSchema = {
  operationId: 'listEnvironments',
  summary: 'List environments',
  description: `All of the service. ${admin}`,
  tags: ['operations'],
  response: {
    200: {
      description: 'All of them.',
      content: { 'application/json': { schema: Type.Array(environmentRecord.ref) } },
    },
    ...refusals(),
  },
} satisfies FastifySchema;

export function showSettings(app: FastifyInstance, { db, config }: System): void {
  const any = { config: { scope: 'any' } } as const;
  app.get('/v1/settings', { ...any, schema: showSettingsSchema }, async (request, reply) => {
    requireAdmin(request);
    const settings: Static<typeof settingRecord.schema>[] = config.inForce.map((each) => ({ ...each }));
    return reply.send(settings);
  });
  app.get('/v1/environments', { ...any, schema: listEnvironmentsSchema }, async (request, reply) => {
    requireAdmin(request);
    const found = await listEnvironments(db);
    return reply.send(found.map(({ name, appToken }) => ({ name, app_token: appToken })));
  });
}
