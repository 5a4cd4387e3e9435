import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { environmentRecord, settingRecord } from '../../api/environment.ts';
import type { System } from '../../context.ts';
import { listEnvironments } from '../../postgres/stores/environments.ts';
import { requireAdmin } from '../plugins/auth.ts';
import { refusals } from '../schemas/answers.ts';

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
