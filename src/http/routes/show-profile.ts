import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { companyProfile, userProfile } from '../../api/profile.ts';
import type { System } from '../../context.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_ID_BYTES } from '../../domain/limits.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { sendJson } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { errorAnswers, jobRefusals } from '../schemas/answers.ts';

/** What an entity is called in sentences, and its schema. */
const kinds = {
  users: { one: 'user', schema: userProfile, operationId: 'showUser' },
  companies: { one: 'company', schema: companyProfile, operationId: 'showCompany' },
} as const satisfies Record<Entity, object>;

export function noSuchProfile(entity: Entity, id: string): Error {
  const details = `${idColumn[entity]}: ${id.slice(0, 100).toWellFormed()}`;
  return inputError('not_found', `there is no such ${kinds[entity].one}`, details);
}

/** The id in a path. What cannot be an id is that of nobody. */
function idParameter(entity: Entity) {
  const message = `there is no such ${kinds[entity].one}`;
  const id = Type.String({
    description: `Id of the ${kinds[entity].one}, URL-encoded; any id that was taken in can be asked for.`,
    examples: [entity === 'users' ? 'u1' : 'acme'],
  });
  return worded(
    ruled(id, (text) => (textProblem(text, MAX_ID_BYTES) === null ? null : message)),
    {
      says: (value) => ({
        code: 'not_found',
        message,
        details: `${idColumn[entity]}: ${String(value).slice(0, 100).toWellFormed()}`,
      }),
    },
  );
}

export const userParameters = Type.Object({ user_id: idParameter('users') });

export const companyParameters = Type.Object({ company_id: idParameter('companies') });

const showProfileSchema = (entity: Entity) => {
  const { one, schema, operationId } = kinds[entity];
  return {
    operationId,
    summary: `Show a ${one}`,
    description: `Returns the ${one} as it is stored now, including everything that was answered with 202 before. 405 if the path takes POST and no ${one} has that id.`,
    tags: ['reading'],
    params: entity === 'users' ? userParameters : companyParameters,
    response: {
      200: { description: `The ${one}.`, content: { 'application/json': { schema: schema.ref } } },
      ...jobRefusals(),
      ...errorAnswers('method_not_allowed'),
    },
  } satisfies FastifySchema;
};

/** Sibling paths that take POST only. A profile whose id is one of them is shown. */
const postPaths: Readonly<Record<Entity, readonly string[]>> = {
  users: ['bulk_identify'],
  companies: ['identify', 'bulk_identify'],
};

/** Shows one profile, as JSON that PostgreSQL wrote. */
export function showProfile(app: FastifyInstance, system: System, entity: Entity): void {
  const options = {
    config: { scope: 'read', trustsKnownKeys: true },
    schema: showProfileSchema(entity),
  } as const;
  const name = idColumn[entity];
  app.get<{ Params: Static<typeof userParameters> & Static<typeof companyParameters> }>(
    `/v1/${entity}/:${name}`,
    options,
    async (request, reply) => {
      const id = request.params[name];
      const json = await readProfile(system.reader, entity, environmentId(request), id);
      if (json !== null) return sendJson(reply, json);
      if (!postPaths[entity].includes(id)) throw noSuchProfile(entity, id);
      reply.header('allow', 'POST');
      throw inputError('method_not_allowed', `${request.method} is not allowed here`, 'allowed: POST');
    },
  );
}
