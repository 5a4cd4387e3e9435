import { uuidv7 } from 'uuidv7';
import { aliasBody, aliasPage, madeAlias } from '../../api/alias.ts';
import { addAlias } from '../../load/undo/add-alias.ts';
import { findPerson, readAliases } from '../../postgres/stores/aliases.ts';
import { askedPage, keyCursor, keyPage, pageBytes, sendEnvelope, takePage } from '../page.ts';
import { callerOrigin } from '../plugins/auth.ts';
import { lenientQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';
import { isKnown, noSuchProfile, userParameters } from './profiles.ts';

const addOne = route({
  at: 'POST /v1/users/:user_id/aliases',
  operationId: 'addUserAlias',
  summary: 'Give a user an alias',
  description:
    'From now on, records of the alias belong to the user. A job of type `join` moves what was stored under the alias: its events, and the properties that the user lacks or that are newer. Undoing that job takes the alias away again. If the user is an alias, the alias goes to the person; a person who becomes an alias takes all aliases along.',
  access: 'ingest',
  // What pages send may link a visitor to a user, but their key joins no two users of a caller's choice.
  config: { notOfPages: true },
  params: userParameters,
  json: {
    schema: aliasBody,
    examples: {
      anonymous: { summary: 'The ID of a device', value: { alias: 'anon-7f3a' } },
      merge: { summary: 'Two persons who are one', value: { alias: 'u2', merge: true } },
    },
  },
  answer: { status: 202, description: 'The alias counts from now on.', schema: madeAlias.ref },
  refuses: ['alias_taken', 'suppressed'],
  handle: async ({ system, request, environment, params, body }) => {
    if (params.user_id.trim() === '') throw noSuchProfile('users', params.user_id);
    const asked = { jobId: uuidv7(), requestId: request.id, origin: callerOrigin(request) };
    const link = { alias: body.alias, userId: params.user_id };
    return addAlias(system, environment, link, body.merge ?? false, asked);
  },
});

const list = route({
  at: 'GET /v1/users/:user_id/aliases',
  operationId: 'listUserAliases',
  summary: 'List the aliases of a user',
  description: 'Lists the aliases of the person whom the ID belongs to, sorted.',
  access: 'read',
  config: pageBytes,
  params: userParameters,
  query: lenientQuery(keyPage),
  answer: { description: 'A page.', headers: ['Link'], schema: aliasPage.ref },
  handle: async (call) => {
    const { db } = call.system.reader;
    const { limit, after } = askedPage(call.query, keyCursor);
    const person = await findPerson(db, call.environment, call.params.user_id);
    const found = await readAliases(db, call.environment, person, { limit: limit + 1, after });
    if (
      found.length === 0 &&
      after === null &&
      !(await isKnown(call.system, 'users', call.environment, person))
    )
      throw noSuchProfile('users', person);
    const { items, next } = takePage(found, limit, ({ alias }) => keyCursor.write(alias));
    return sendEnvelope(call, items, next, { user_id: person });
  },
});

export const aliasRoutes: readonly Route[] = [addOne, list];
