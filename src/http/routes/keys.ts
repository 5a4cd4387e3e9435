import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { renderKey } from '../../access/render-key.ts';
import { apiKey, issuedKey } from '../../api/key.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { readInstant } from '../../domain/instant.ts';
import { type Scope, scopes } from '../../domain/scope.ts';
import { createApiKey, listApiKeys, revokeApiKey, rotateApiKey } from '../../postgres/stores/api-keys.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { environmentId, requireAdmin } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';

const closed = { additionalProperties: false };

const admin = 'For a session of the console that was begun with ADMIN_KEY, or by a link of the command line.';

const notAnInstant = 'an end is a day or an instant to come, such as 2027-01-01';

const end = (description: string) =>
  Type.Optional(
    worded(
      ruled(Type.String({ description, examples: ['2027-01-01'] }), (text) =>
        readInstant(text) === null ? notAnInstant : null,
      ),
      notAnInstant,
    ),
  );

const newKey = Type.Object(
  {
    label: worded(Type.String({ description: 'What it is for.' }), 'label is a text'),
    scopes: Type.Optional(
      worded(
        Type.Array(Type.Enum([...scopes], { type: 'string' }), {
          description: 'What it allows; by default everything.',
        }),
        `scopes are of ${scopes.join(', ')}`,
      ),
    ),
    expires_at: end('When it ends; by default never.'),
  },
  { ...closed, description: 'What the key is to be.' },
);

const findKeyProblems = compileSchema(newKey);

const rotation = Type.Object(
  {
    old_expires_at: end('When the old key ends; by default as before.'),
    expires_at: end('When the new one ends; by default never.'),
  },
  { ...closed, description: 'When both end.' },
);

const findRotationProblems = compileSchema(rotation);

const listKeysSchema = {
  operationId: 'listKeys',
  summary: 'List API keys',
  description: `The keys of the environment that the session looks at, newest first, the expired and revoked ones too. ${admin}`,
  tags: ['keys'],
  response: {
    200: { description: 'All of them.', content: { 'application/json': { schema: Type.Array(apiKey.ref) } } },
    ...refusals(),
  },
} satisfies FastifySchema;

const bodyRefusals = [
  'invalid_json',
  'missing_field',
  'invalid_field',
  'upload_too_slow',
  'payload_too_large',
  'unsupported_media_type',
] as const;

const issued = {
  description: 'The key is made, and shown this once.',
  content: { 'application/json': { schema: issuedKey.ref } },
};

const createKeySchema = {
  operationId: 'createKey',
  summary: 'Make an API key',
  description: `Only a digest of it is kept. ${admin}`,
  tags: ['keys'],
  body: {
    content: {
      'application/json': withExamples(newKey, {
        nightly: { summary: 'For uploads', value: { label: 'nightly', scopes: ['import', 'read'] } },
      }),
    },
  },
  response: { 201: issued, ...refusals(...bodyRefusals) },
} satisfies FastifySchema;

const noSuchKey = 'the environment has no such key';

const parameters = Type.Object({
  key_id: worded(
    Type.String({ pattern: '^[0-9a-z]{12}$', description: 'Its public id.', examples: ['0tzwkpc87gq5'] }),
    { says: { code: 'not_found', message: noSuchKey, details: 'key_id' } },
  ),
});

const rotateKeySchema = {
  operationId: 'rotateKey',
  summary: 'Make a key in the place of another',
  description: `A second key with the label and scopes of the first; both work until the old one ends or is revoked. ${admin}`,
  tags: ['keys'],
  params: parameters,
  body: {
    content: {
      'application/json': withExamples(rotation, {
        week: { summary: 'The old one ends', value: { old_expires_at: '2027-01-01' } },
      }),
    },
  },
  response: {
    201: issued,
    ...jobRefusals(
      'invalid_json',
      'missing_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

const revokeKeySchema = {
  operationId: 'revokeKey',
  summary: 'Revoke an API key',
  description: `It is refused from now on, for good, and so are the sessions that were begun with it. ${admin}`,
  tags: ['keys'],
  params: parameters,
  response: { 204: { type: 'null', description: 'It is revoked.' }, ...jobRefusals() },
} satisfies FastifySchema;

/** Each wants an administrator, who sees the keys of the environment that the session looks at. */
export function listKeys(app: FastifyInstance, { db }: System): void {
  const any = { config: { scope: 'any' } } as const;
  app.get('/v1/keys', { ...any, schema: listKeysSchema }, async (request, reply) => {
    requireAdmin(request);
    const found = await listApiKeys(db, environmentId(request));
    return reply.send(found.map((key): Static<typeof apiKey.schema> => renderKey(key)));
  });
  app.post<{ Params: Static<typeof parameters> }>(
    '/v1/keys/:key_id/revoke',
    { ...any, schema: revokeKeySchema },
    async (request, reply) => {
      requireAdmin(request);
      await revokeApiKey(db, environmentId(request), request.params.key_id);
      return reply.code(204).send();
    },
  );
}

export function issueKeys(scope: FastifyInstance, { db }: System): void {
  const any = { config: { scope: 'any' } } as const;
  scope.post('/v1/keys', { ...any, schema: createKeySchema }, async (request, reply) => {
    requireAdmin(request);
    const wish = readJsonObject(bodyBytes(request));
    throwProblems(findKeyProblems(wish));
    const { label, scopes: allowed, expires_at } = wish as Static<typeof newKey>;
    const made = await createApiKey(db, environmentId(request), {
      label,
      expiresAt: dateOf(expires_at),
      ...(allowed === undefined ? {} : { scopes: allowed as Scope[] }),
    });
    const answer: Static<typeof issuedKey.schema> = { ...renderKey(made), key: made.key };
    return reply.code(201).send(answer);
  });
  scope.post<{ Params: Static<typeof parameters> }>(
    '/v1/keys/:key_id/rotate',
    { ...any, schema: rotateKeySchema },
    async (request, reply) => {
      requireAdmin(request);
      const wish = readJsonObject(bodyBytes(request));
      throwProblems(findRotationProblems(wish));
      const { old_expires_at, expires_at } = wish as Static<typeof rotation>;
      const dates = { oldExpiresAt: dateOf(old_expires_at), expiresAt: dateOf(expires_at) };
      const made = await rotateApiKey(db, environmentId(request), request.params.key_id, dates);
      const answer: Static<typeof issuedKey.schema> = { ...renderKey(made), key: made.key };
      return reply.code(201).send(answer);
    },
  );
}

function dateOf(text: string | undefined): Date | null {
  const instant = text === undefined ? null : readInstant(text);
  return instant === null ? null : new Date(instant.ms);
}

const validateKeySchema = {
  operationId: 'validateKey',
  summary: 'Is the key valid?',
  description: 'Clients call it to test a connection. The key may have any scope.',
  tags: ['keys'],
  response: {
    200: {
      description: 'It is. The object is empty.',
      content: {
        'application/json': { schema: Type.Object({}, { additionalProperties: false, examples: [{}] }) },
      },
    },
    ...refusals(),
  },
} satisfies FastifySchema;

/** 200 for a good key; what is wrong with another says the hook that looks at keys. */
export function validateKey(app: FastifyInstance): void {
  app.get('/v1/validate', { config: { scope: 'any' }, schema: validateKeySchema }, (_request, reply) => {
    reply.send({});
  });
}
