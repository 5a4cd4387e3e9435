import type { Call } from '../client.ts';
import type { Sql } from '../site/site.ts';
import { pause } from '../waiting.ts';
import { type Actor, type Stage, some } from './actor.ts';
import { type Profile, readProfiles, render } from './profile-space.ts';

const keysAtATime = 40;
/** The number of keys whose past is remembered. */
const keysKept = 20_000;

/**
 * Identifies users and companies one by one. Half of the requests bear an Idempotency-Key and are repeated until they are
 * answered; the others are sent once. A key whose write was not answered may be as before or as after, and is written no
 * more: what was sent might still arrive.
 */
export function createIdentify(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Actor {
  const { name } = options;
  const tenant = stage.tenant(options.tenant);
  const client = stage.client(tenant);
  const random = stage.random(name);
  const kinds = [
    { entity: 'users', path: '/v1/identify', id: 'user_id' },
    { entity: 'companies', path: '/v1/companies/identify', id: 'company_id' },
  ] as const;
  /** By entity and key: every state that is allowed; null: not there. */
  const allowed = {
    users: new Map<string, readonly (Profile | null)[]>(),
    companies: new Map<string, readonly (Profile | null)[]>(),
  };
  const current: string[] = [];
  let [made, accepted, sent] = [0, 0, 0];

  function pickKey(): string {
    while (current.length < keysAtATime) current.push(`${name}-${made++}`);
    return random.pick(current);
  }

  function retire(key: string): void {
    current.splice(current.indexOf(key), 1);
  }

  async function send(): Promise<void> {
    const kind = random.pick(kinds);
    const states = allowed[kind.entity];
    const key = pickKey();
    const mark = `${name}-${sent++}`;
    const properties = { [random.pick(['one', 'two', 'three'])]: mark };
    const before = states.get(key)?.[0] ?? null;
    const after = { ...before, ...properties };
    const isKeyed = random.chance(0.5);
    const call: Call = {
      method: 'POST',
      path: kind.path,
      body: { [kind.id]: key, metadata: properties },
      headers: isKeyed ? { 'idempotency-key': mark } : {},
      expected: [202],
    };
    const answer = isKeyed ? await client.insist(call) : await client.once(call);
    if (answer?.status === 202) {
      accepted++;
      states.set(key, [after]);
    } else {
      states.set(key, [before, after]);
      retire(key);
    }
    if (random.chance(0.002)) retire(random.pick(current));
  }

  return {
    name,
    async run() {
      // Without bound, an hour's keys would fill the memory that is to be judged for others.
      while (!stage.closing.aborted && made < keysKept) {
        await send();
        await pause(random.integer(0, 40), stage.closing);
      }
    },
    figures: () => ({ sent, accepted, unanswered: client.unanswered }),
    async check(sql: Sql) {
      const problems: string[] = [];
      for (const { entity } of kinds) {
        const stored = await readProfiles(sql, entity, `${name}-`, tenant);
        const wrong = [...allowed[entity]].flatMap(([key, states]) => {
          const found = renderOrNone(stored.get(key) ?? null);
          const wanted = states.map(renderOrNone);
          return wanted.includes(found) ? [] : [`${key} is ${found}, not ${wanted.join(' or ')}`];
        });
        const surplus = [...stored.keys()].filter((key) => !allowed[entity].has(key));
        if (wrong.length > 0) problems.push(`${entity}: ${some(wrong)}`);
        if (surplus.length > 0) problems.push(`${entity} that nobody sent: ${some(surplus)}`);
      }
      return problems;
    },
  };
}

function renderOrNone(profile: Profile | null): string {
  return profile === null ? 'absent' : render(profile);
}
