import { render } from '../api/render.ts';
import type { ApiKey } from '../postgres/stores/api-keys.ts';

/* A key as it is listed, in the API and with `--json`: never the key itself. */

export function renderKey(key: ApiKey) {
  const { keyId, label, scopes, ...times } = key;
  return render({ keyId, label, scopes: [...scopes], status: keyStatus(key), ...times });
}

function keyStatus({ expiresAt, revokedAt }: ApiKey): 'live' | 'expired' | 'revoked' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}
