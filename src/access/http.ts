import { Type } from 'typebox';
import { optional, worded } from '../base/validation.ts';
import { keyScopes } from '../domain/caller.ts';
import { exportLayouts } from '../domain/export.ts';
import { dateOf, instantParameter, pathParameter } from '../http/parameters.ts';
import { type Route, route } from '../http/route.ts';
import { listOf, object, text, texts } from '../http/schema.ts';
import { addEnvironment, endKey, issueKey, setEnvironment } from './acts.ts';
import { apiKey, environmentRecord, issuedKey } from './api.ts';
import { listEnvironments } from './environment-store.ts';
import { listApiKeys } from './key-store.ts';
import { renderEnvironment, renderKey } from './verify-key.ts';

const end = (description: string) =>
  Type.Optional(
    instantParameter(description, 'an end is a day or an instant to come, such as 2027-01-01', '2027-01-01'),
  );

const params = pathParameter(
  'key_id',
  Type.String({
    pattern: '^[0-9a-z]{12}$',
    description: 'Public ID of the key.',
    examples: ['0tzwkpc87gq5'],
  }),
  'The environment has no such key',
);

const list = route({
  at: 'GET /v1/keys',
  operationId: 'listKeys',
  summary: 'List API keys',
  description: `Lists the keys of the session's environment, newest first, including expired and revoked ones.`,
  access: 'admin',
  answer: { description: 'All keys.', schema: Type.Array(apiKey.ref) },
  handle: async ({ system: { db }, environment }) => (await listApiKeys(db, environment)).map(renderKey),
});

const create = route({
  at: 'POST /v1/keys',
  operationId: 'createKey',
  summary: 'Create an API key',
  description: `Creates a key. Only its digest is stored.`,
  access: 'admin',
  json: {
    schema: object('The key to create.', {
      label: worded(text('Label of the key.'), 'label is a text'),
      scopes: optional(
        listOf('What the key may do. Default: everything.', Type.Enum([...keyScopes], { type: 'string' })),
        `scopes are of ${keyScopes.join(', ')}`,
      ),
      expires_at: end('When the key expires. Default: never.'),
    }),
    examples: {
      nightly: { summary: 'For uploads', value: { label: 'nightly', scopes: ['import', 'read'] } },
    },
  },
  answer: { status: 201, description: 'The key. It is shown only once.', schema: issuedKey.ref },
  handle: async ({ system, environment, body: { label, scopes: allowed, expires_at } }) => {
    const expiresAt = dateOf(expires_at);
    const newKey = { label, expiresAt, ...(allowed !== undefined && { scopes: allowed }) };
    const issued = await issueKey(system, environment, newKey);
    return { ...renderKey(issued), key: issued.key };
  },
});

const revoke = route({
  at: 'POST /v1/keys/:key_id/revoke',
  operationId: 'revokeKey',
  summary: 'Revoke an API key',
  description: `Revokes the key for good, and ends the sessions that began with it.`,
  access: 'admin',
  params,
  answer: { status: 204, description: 'The key is revoked.' },
  handle: async ({ system, params: { key_id }, environment }) => {
    await endKey(system, environment, key_id);
  },
});

/** The authentication hook has already refused invalid keys. */
const validate = route({
  at: 'GET /v1/validate',
  operationId: 'validateKey',
  summary: 'Validate a key',
  description: 'Lets clients test a connection. The key may have any scope.',
  access: 'any',
  answer: {
    description: 'The key is valid. The object is empty.',
    schema: Type.Object({}, { additionalProperties: false, examples: [{}] }),
  },
  handle: async () => ({}),
});

const createEnvironmentRoute = route({
  at: 'POST /v1/environments',
  operationId: 'createEnvironment',
  summary: 'Create an environment',
  description: `Creates a tenant. Its profiles, jobs and keys cannot be reached from any other.`,
  access: 'admin',
  json: {
    schema: object('The environment to create.', {
      name: worded(text('1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit.'), 'name is a text'),
    }),
    examples: { staging: { summary: 'One', value: { name: 'staging' } } },
  },
  answer: { status: 201, description: 'The environment.', schema: environmentRecord.ref },
  handle: async ({ system, body }) => {
    return renderEnvironment(await addEnvironment(system, body.name));
  },
});

const change = route({
  at: 'PATCH /v1/environments/:name',
  operationId: 'changeEnvironment',
  summary: 'Change an environment',
  description: 'Sets the layout of exports that name none, and from which pages records are taken.',
  access: 'admin',
  params: pathParameter(
    'name',
    Type.String({
      pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
      description: 'Name of the environment.',
      examples: ['staging'],
    }),
    'There is no such environment',
  ),
  json: {
    schema: object('What to change.', {
      export_layout: optional(
        Type.Enum([...exportLayouts], { type: 'string', description: 'Layout of exports that name none.' }),
        `export_layout is one of ${exportLayouts.join(', ')}`,
      ),
      allowed_origins: optional(
        texts(
          'Origins of the pages that may send records: scheme, host, and port if need be. Servers notice within a second.',
        ),
        'allowed_origins is a list of texts',
      ),
    }),
    examples: { stream: { summary: 'One file of all kinds', value: { export_layout: 'stream' } } },
  },
  answer: { description: 'The environment.', schema: environmentRecord.ref },
  handle: async ({ system, params: { name }, body }) =>
    renderEnvironment(await setEnvironment(system, name, body)),
});

const environments = route({
  at: 'GET /v1/environments',
  operationId: 'listEnvironments',
  summary: 'List environments',
  description: `Lists all environments of the service.`,
  access: 'admin',
  answer: { description: 'All environments.', schema: Type.Array(environmentRecord.ref) },
  handle: async ({ system: { db } }) => (await listEnvironments(db)).map(renderEnvironment),
});

export const keyRoutes: readonly Route[] = [list, create, revoke, validate];

export const environmentRoutes: readonly Route[] = [createEnvironmentRoute, change, environments];
