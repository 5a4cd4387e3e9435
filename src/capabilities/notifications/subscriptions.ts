import { inputError, messageOf } from '../../base/errors.ts';
import { requireAllowedHost } from '../../base/http-client.ts';
import { isMailAddress } from '../../base/mail-address.ts';
import { itemNameRule } from '../../base/operator-file/schema.ts';
import { capitalise } from '../../base/wording.ts';
import { type ActContext, act } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import { isUniqueViolation } from '../../postgres/sqlstate.ts';
import { generateSecret, reachOf, type WebhookRules } from './send-webhook.ts';
import {
  findSubscription,
  insertSubscription,
  listSubscriptions,
  markSubscriptionRemoved,
  type NewSubscription,
  replaceSecret,
  type Subscription,
} from './subscription-store.ts';

export const MAX_WEBHOOK_URL_CHARS = 2_000;
export const MAX_SUBSCRIPTIONS = 100;
/** Hours during which webhooks are also signed with the previous secret. */
export const usualOverlapHours = 24;

type AddressRules = Pick<WebhookRules, 'allowPrivate'>;

/**
 * The secret is shown only once. It is `null` for mail and chats.
 * @throws InputError
 */
export async function addSubscription(
  context: ActContext,
  environmentId: number,
  wish: NewSubscription,
  rules: AddressRules,
): Promise<{ readonly subscription: Subscription; readonly secret: string | null }> {
  const { name = null } = wish;
  const [pattern, rule] = itemNameRule;
  if (name !== null && !new RegExp(pattern).test(name))
    throw inputError('invalid_field', `name ${rule}`, 'name');
  const target = checkTarget(wish, rules);
  requireRoom((await listSubscriptions(context.db, environmentId)).length + 1);
  try {
    return await createSubscription(context, environmentId, { ...wish, target });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw inputError('invalid_field', `name is taken: another subscription is named ${name}`, 'name');
  }
}

export function requireRoom(subscriptions: number): void {
  if (subscriptions > MAX_SUBSCRIPTIONS)
    throw inputError('invalid_field', `An environment has at most ${MAX_SUBSCRIPTIONS} subscriptions`);
}

/** The caller must have checked the target. If `chosen` is `null`, a secret is generated. */
export async function createSubscription(
  context: ActContext,
  environmentId: number,
  wish: NewSubscription,
  chosen: string | null = null,
): Promise<{ readonly subscription: Subscription; readonly secret: string | null }> {
  const secret = isSigned(wish) ? (chosen ?? generateSecret()) : null;
  const subscription = await act(
    context,
    (db) => insertSubscription(db, environmentId, wish, secret),
    ({ subscriptionId: thing, channel }) => ({
      action: 'subscription.created',
      environmentId,
      thing,
      details: { channel },
    }),
  );
  return { subscription, secret };
}

export function isSigned({
  channel,
  format = 'standard',
}: Pick<NewSubscription, 'channel' | 'format'>): boolean {
  return channel === 'webhook' && format === 'standard';
}

function checkTarget({ channel, target, format = 'standard' }: NewSubscription, rules: AddressRules): string {
  if (channel === 'webhook') return checkWebhookUrl(target, rules);
  if (format !== 'standard')
    throw inputError('invalid_field', 'format is about webhooks. Leave it out for an email', 'format');
  if (isMailAddress(target)) return target;
  throw inputError('invalid_field', 'email must be one plain address such as ada@example.com', 'email');
}

/**
 * Checks the text of the URL. The resolved address is checked for each delivery.
 * @throws InputError
 */
export function checkWebhookUrl(text: string, { allowPrivate }: AddressRules): string {
  const url = URL.canParse(text) && text.length <= MAX_WEBHOOK_URL_CHARS ? new URL(text) : null;
  if (url === null || !['https:', 'http:'].includes(url.protocol)) {
    throw inputError('invalid_field', 'url must be an address such as https://example.com/hooks', 'url');
  }
  if (url.protocol === 'http:' && !allowPrivate) {
    const message =
      'url must begin with https://. NOTIFY_ALLOW_PRIVATE=true allows http:// in private networks';
    throw inputError('invalid_field', message, 'url');
  }
  if (url.username !== '' || url.password !== '') {
    throw inputError('invalid_field', 'url must not have a user or password', 'url');
  }
  url.hash = '';
  requireAllowed(url, allowPrivate);
  return url.href;
}

export const hidden = '***';

/** The path and query of a URL may be secret. */
export function shownTarget({ channel, target }: Pick<Subscription, 'channel' | 'target'>): string {
  return channel === 'email' ? target : `${new URL(target).origin}/${hidden}`;
}

function requireAllowed(url: URL, allowPrivate: boolean): void {
  try {
    requireAllowedHost(url.hostname, reachOf(url, allowPrivate));
  } catch (error) {
    const reason = messageOf(error);
    const message = `${capitalise(reason)}. NOTIFY_ALLOW_PRIVATE=true allows addresses of private networks`;
    throw inputError('invalid_field', message, 'url');
  }
}

/** @throws InputError `not_found`, including for a subscription of another environment */
export async function requireSubscription(
  db: Database,
  environmentId: number,
  subscriptionId: string,
): Promise<Subscription> {
  const subscription = await findSubscription(db, environmentId, subscriptionId);
  if (subscription === null) throw unknown(subscriptionId);
  return subscription;
}

/**
 * Removes a subscription. Its deliveries remain listed.
 * @throws InputError `not_found`
 */
export async function removeSubscription(
  context: ActContext,
  environmentId: number,
  subscriptionId: string,
): Promise<void> {
  const isRemoved = await act(
    context,
    (db) => markSubscriptionRemoved(db, environmentId, subscriptionId),
    (isChanged) =>
      isChanged ? { action: 'subscription.removed', environmentId, thing: subscriptionId } : null,
  );
  if (!isRemoved) throw unknown(subscriptionId);
}

/**
 * Replaces the secret. The new secret is shown only once. For `overlapHours`, webhooks are also
 * signed with the previous secret. Older secrets are invalid.
 * @throws InputError `not_found`, or `invalid_field` for mail and chats
 */
export async function rotateSecret(
  context: ActContext,
  environmentId: number,
  subscriptionId: string,
  overlapHours: number,
): Promise<{ readonly secret: string; readonly previousUntil: Date }> {
  const subscription = await requireSubscription(context.db, environmentId, subscriptionId);
  if (!isSigned(subscription))
    throw inputError('invalid_field', 'Only webhooks of the format standard have a secret');
  const secret = generateSecret();
  const previousUntil = await changeSecret(context, environmentId, subscriptionId, { secret, overlapHours });
  return { secret, previousUntil };
}

/**
 * Returns the time at which the previous secret becomes invalid.
 * @throws InputError `not_found`
 */
export async function changeSecret(
  context: ActContext,
  environmentId: number,
  subscriptionId: string,
  { secret, overlapHours }: { readonly secret: string; readonly overlapHours: number },
): Promise<Date> {
  const previousUntil = await act(
    context,
    (db) => replaceSecret(db, environmentId, subscriptionId, secret, overlapHours),
    (until) => until && { action: 'subscription.secret_rotated', environmentId, thing: subscriptionId },
  );
  if (previousUntil === null) throw unknown(subscriptionId);
  return previousUntil;
}

function unknown(subscriptionId: string): Error {
  return inputError(
    'not_found',
    'The environment has no such subscription',
    `subscription: ${subscriptionId}`,
  );
}
