import { MAX_ID_BYTES } from '../../base/limits.ts';
import { idList } from '../../deletion/deletions.ts';
import { textParameter } from '../../http/parameters.ts';
import { bodyBytes } from '../../http/plugins/json-body.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { type Route, route } from '../../http/route.ts';
import { withExamples } from '../../http/schema.ts';
import { act } from '../../postgres/acts.ts';
import { liftedSuppressions, suppressionCount } from './api.ts';
import { countSuppressions, findSuppressed, liftSuppressions } from './store.ts';

const lifting = idList('users', 'The ids to let in again.');

const showSuppressions = route({
  at: 'GET /v1/suppressions',
  operationId: 'countSuppressions',
  summary: 'Count the users who are kept out',
  description:
    'Counts the IDs that deletions with `suppress` keep out. Only hashes of them are stored, so they cannot be listed; `user_id` asks about one.',
  access: 'read',
  query: lenientQuery({
    user_id: textParameter('user_id', MAX_ID_BYTES, 'Count only this ID: 1 if it is kept out, else 0.', 'u1'),
  }),
  answer: { description: 'The number.', schema: suppressionCount.ref },
  handle: async ({ system: { reader }, environment, query: { user_id: id } }) => ({
    count:
      id === undefined
        ? await countSuppressions(reader.db, environment)
        : (await findSuppressed(reader.db, environment, [id])).size,
  }),
});

const lift = route({
  at: 'DELETE /v1/suppressions',
  operationId: 'liftSuppressions',
  summary: 'Let users in again',
  description:
    'Lifts the suppression of these IDs: later records of them are accepted. Deleted data does not come back.',
  access: 'delete',
  bodyKind: 'deletion',
  content: {
    'application/json': withExamples(lifting.schema, {
      ids: { summary: 'One of them', value: { users: ['u1'] } },
    }),
  },
  answer: { description: 'The outcome.', schema: liftedSuppressions.ref },
  refuses: ['too_many_records'],
  handle: async ({ system, request, environment }) => {
    const ids = lifting.read(bodyBytes(request));
    const lifted = await act(
      system,
      (db) => liftSuppressions(db, environment, ids),
      (count) => ({
        action: 'suppression.lifted',
        environmentId: environment,
        thing: null,
        details: { ids: ids.length, lifted: count },
      }),
    );
    return { lifted, not_found: ids.length - lifted };
  },
});

export const suppressionRoutes: readonly Route[] = [showSuppressions, lift];
