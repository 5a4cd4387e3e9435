import { type Static, Type } from 'typebox';
import { readSettingText } from '../../base/config.ts';
import { type FieldChange, listFieldChanges } from '../../base/difference.ts';
import { ConfigError, InputError } from '../../base/errors.ts';
import type { Place } from '../../base/operator-file/read.ts';
import {
  choice,
  exactlyOne,
  itemName,
  mailAddress,
  text,
  withDefault,
} from '../../base/operator-file/schema.ts';
import { Placeholders } from '../../base/placeholders.ts';
import { type Declaration, defineSection, type ItemChange } from '../../cli/seam.ts';
import { outcomes } from '../../domain/job.ts';
import { type ActContext, act } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import { defaultJobKinds, defaultOutcomes, formatMeaning, formatNames, jobKinds } from './api.ts';
import { readDeliveryPolicy } from './deliver.ts';
import { isSecret } from './send-webhook.ts';
import {
  changeSubscription,
  listSubscriptions,
  type NamedSubscription,
  readSecrets,
  type Subscription,
} from './subscription-store.ts';
import {
  changeSecret,
  checkWebhookUrl,
  createSubscription,
  hidden,
  isSigned,
  MAX_SUBSCRIPTIONS,
  MAX_WEBHOOK_URL_CHARS,
  removeSubscription,
  requireRoom,
  shownTarget,
  usualOverlapHours,
} from './subscriptions.ts';

/* Subscriptions that a file declares, each with a name. Subscriptions without a name are kept. */

const placeholders = new Placeholders('SUBSCRIPTION_');
const problem = (value: string) => placeholders.problemOf(value);
const variable = (name: string) => `a variable of this command such as \${env:SUBSCRIPTION_${name}}`;
const secretHint = variable('SECRET');

const some = <const T extends string>(words: readonly T[], standard: readonly T[], description: string) =>
  withDefault(
    Type.Array(choice(words, 'One of them.'), { description, minItems: 1, maxItems: words.length }),
    [...standard],
  );

const subscription = Type.Object(
  {
    name: itemName(
      'Name in the file. With the same name, a signed webhook, a chat or an address keeps its secret and its deliveries.',
    ),
    url: Type.Optional(
      text({
        maxChars: MAX_WEBHOOK_URL_CHARS,
        description: `A webhook, https://…; may hold \${env:SUBSCRIPTION_…}.`,
        problem,
      }),
    ),
    email: Type.Optional(mailAddress),
    format: withDefault(choice(formatNames, formatMeaning), 'standard'),
    on: some(outcomes, defaultOutcomes, 'Outcomes of jobs that it is notified of.'),
    types: some(jobKinds, defaultJobKinds, 'Kinds of jobs that it is notified of.'),
    secret: Type.Optional(
      text({
        maxChars: 200,
        description: `Is \${env:SUBSCRIPTION_…}, whose value signs webhooks. Default: sluice makes one.`,
        problem,
      }),
    ),
  },
  {
    title: 'a subscription',
    description: 'A receiver, and the jobs that it is notified of.',
    additionalProperties: false,
    ...exactlyOne(['url', 'email'], 'must have either url or email'),
  },
);
type DeclaredSubscription = Static<typeof subscription>;

const schema = Type.Array(subscription, {
  description: 'Who is notified of the end of jobs.',
  maxItems: MAX_SUBSCRIPTIONS,
});

export const subscriptionsSection = defineSection<typeof schema>({
  name: 'subscriptions',
  async open(of) {
    return {
      file: {
        schema,
        emptyHint: 'without subscriptions it is written `[]`',
        check: (root) => root.reportRepeats('name'),
        checkValue(root, declared) {
          for (const [at, each] of declared.entries()) checkOne(root.at([at]), each, of);
        },
      },
      async plan(db, environmentId, declared, { prune }) {
        const wishes = declared.map((each) => wishOf(each, of));
        const steps = await compare(db, environmentId, wishes, prune);
        return {
          changes: steps.map(({ change }) => change),
          async write(acts) {
            for (const step of steps) await write({ db, acts }, environmentId, step);
          },
        };
      },
    };
  },
});

function checkOne(place: Place, declared: DeclaredSubscription, of: Declaration): void {
  const { url, format } = declared;
  if (url === undefined && format !== 'standard') place.at(['format']).reportName('is for webhooks only');
  checkSecret(place.at(['secret']), declared, of);
  if (url === undefined) return;
  const urlPlace = place.at(['url']);
  if (format !== 'standard' && placeholders.namesIn(url).length === 0) {
    urlPlace.report(`is the secret of a chat; it must be, or have, ${variable('URL')}`);
    return;
  }
  // The messages of `readUrl` contain the host, so the host must not be secret.
  if (placeholders.isInHost(url)) {
    urlPlace.report('must not hold a variable in its host');
    return;
  }
  for (const name of placeholders.cleartextSecretsIn(url))
    urlPlace.report(`has a secret, it seems; ${name} must be ${secretHint}`);
  reportFailure(urlPlace, () => readUrl(url, of));
}

function checkSecret(place: Place, { url, format, secret }: DeclaredSubscription, of: Declaration): void {
  if (secret === undefined) return;
  if (url === undefined) place.reportName('is for webhooks only');
  else if (format !== 'standard') place.reportName('is for the format standard only');
  else if (!placeholders.isOne(secret)) place.report(`must be ${secretHint}`);
  else
    reportFailure(place, () => {
      if (!isSecret(fillIn(secret, of))) place.report('must be whsec_ and 32 bytes in Base64');
    });
}

function reportFailure(place: Place, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof InputError) place.report(`is refused: ${error.problems[0].message}`);
    else if (error instanceof ConfigError) place.report(`has a variable without a value: ${error.message}`);
    else throw error;
  }
}

function fillIn(text: string, { cli: { processEnv } }: Declaration): string {
  return placeholders.fillIn(text, (name) => {
    const value = readSettingText(name, processEnv) ?? '';
    if (value === '') throw new ConfigError(`${name} is not set. Set it, or ${name}_FILE`);
    return value;
  });
}

function readUrl(url: string, of: Declaration): string {
  return checkWebhookUrl(fillIn(url, of), readDeliveryPolicy(of.config));
}

type Wish = NamedSubscription & {
  readonly written: string;
  /** `null` if the file has no secret. */
  readonly secret: string | null;
};

function wishOf(declared: DeclaredSubscription, of: Declaration): Wish {
  const { name, url, email = '', format, on, types, secret } = declared;
  const shared = { name, format, outcomes: on, kinds: types, written: url ?? email };
  if (url === undefined) return { ...shared, channel: 'email', target: email, secret: null };
  const filledIn = secret === undefined ? null : fillIn(secret, of);
  return { ...shared, channel: 'webhook', target: readUrl(url, of), secret: filledIn };
}

interface Step {
  readonly change: ItemChange;
  readonly before: Subscription | null;
  readonly wish: Wish | null;
}

async function compare(
  db: Database,
  environmentId: number,
  wishes: readonly Wish[],
  prune: boolean,
): Promise<Step[]> {
  const stored = await listSubscriptions(db, environmentId);
  const secrets = await readSecrets(db, environmentId);
  const remaining = new Set(stored);
  const steps = wishes.flatMap((wish): Step[] => {
    const before = findBefore([...remaining], wish);
    if (before === null) return [stepOf('add', null, wish)];
    remaining.delete(before);
    const fields = listFields(before, wish, secrets.get(before.subscriptionId) ?? null);
    return fields.length === 0 ? [] : [stepOf('change', before, wish, fields)];
  });
  const removed = [...remaining].filter(({ name }) => prune && name !== null);
  const added = steps.filter(({ before }) => before === null);
  if (added.length > 0) requireRoom(stored.length + added.length - removed.length);
  return [...steps, ...removed.map((before) => stepOf('remove', before, null))];
}

function stepOf(
  action: ItemChange['action'],
  before: Subscription | null,
  wish: Wish | null,
  fields: readonly FieldChange[] = [],
): Step {
  return { change: { action, item: (wish ?? before)?.name ?? '', fields }, before, wish };
}

function findBefore(stored: readonly Subscription[], wish: Wish): Subscription | null {
  const isSame = ({ name, channel, target }: Subscription): boolean =>
    name === null && channel === wish.channel && target === wish.target;
  return stored.find(({ name }) => name === wish.name) ?? stored.find(isSame) ?? null;
}

function listFields(before: Subscription, wish: Wish, secret: string | null): FieldChange[] {
  const isMoved = before.channel !== wish.channel || before.target !== wish.target;
  const isNewSecret = wish.secret !== null && wish.secret !== secret;
  return [
    ...listFieldChanges(
      { name: before.name, format: before.format },
      { name: wish.name, format: wish.format },
    ),
    ...(isMoved ? [{ field: 'receiver', before: shownTarget(before), after: wish.written }] : []),
    ...changedList('on', outcomes, before.outcomes, wish.outcomes),
    ...changedList('types', jobKinds, before.kinds, wish.kinds),
    ...(isNewSecret ? [{ field: 'secret', before: hidden, after: hidden }] : []),
  ];
}

function changedList<T>(field: string, all: readonly T[], before: readonly T[], after: readonly T[]) {
  const [old, now] = [before, after].map((list) => all.filter((each) => list.includes(each)));
  return listFieldChanges({ [field]: old }, { [field]: now });
}

async function write(
  context: ActContext,
  environmentId: number,
  { change, before, wish }: Step,
): Promise<void> {
  // A different channel, or a change between signed and unsigned, needs a new subscription.
  const isKept = before !== null && before.channel === wish?.channel && isSigned(before) === isSigned(wish);
  if (before !== null && !isKept) await removeSubscription(context, environmentId, before.subscriptionId);
  if (wish === null) return;
  if (!isKept) {
    await createSubscription(context, environmentId, wish, wish.secret);
    return;
  }
  const { subscriptionId } = before;
  await act(
    context,
    (db) => changeSubscription(db, environmentId, subscriptionId, wish),
    () => ({ action: 'subscription.changed', environmentId, thing: subscriptionId }),
  );
  const { secret } = wish;
  if (secret === null || !change.fields.some(({ field }) => field === 'secret')) return;
  await changeSecret(context, environmentId, subscriptionId, { secret, overlapHours: usualOverlapHours });
}
