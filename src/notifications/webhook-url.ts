import { inputError } from '../domain/errors.ts';
import { MAX_WEBHOOK_URL_CHARS } from '../domain/limits.ts';
import { requirePublicHost } from '../net/guarded-lookup.ts';
import type { DeliveryPolicy } from './delivery-policy.ts';

/**
 * A webhook's address as it may be subscribed. What a name leads to is looked at when something is sent there.
 * Throws `InputError` `invalid_field`.
 */
export function checkWebhookUrl(
  text: string,
  { allowHttp, allowPrivate }: Pick<DeliveryPolicy, 'allowHttp' | 'allowPrivate'>,
): string {
  const url = URL.canParse(text) && text.length <= MAX_WEBHOOK_URL_CHARS ? new URL(text) : null;
  if (url === null || !['https:', 'http:'].includes(url.protocol)) {
    throw inputError('invalid_field', 'an address such as https://example.com/hooks is wanted', 'url');
  }
  if (url.protocol === 'http:' && !allowHttp) {
    throw inputError('invalid_field', 'https:// is wanted; NOTIFY_ALLOW_HTTP=true allows http:// too', 'url');
  }
  if (url.username !== '' || url.password !== '') {
    throw inputError('invalid_field', 'an address without user and password is wanted', 'url');
  }
  url.hash = '';
  if (!allowPrivate) requirePublic(url);
  return url.href;
}

function requirePublic(url: URL): void {
  try {
    requirePublicHost(url.hostname);
  } catch (error) {
    const message = `${error instanceof Error ? error.message : error}; NOTIFY_ALLOW_PRIVATE=true allows it`;
    throw inputError('invalid_field', message, 'url');
  }
}
