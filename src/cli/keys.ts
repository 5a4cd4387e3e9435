import { InvalidArgumentError } from 'commander';
import { scopes as everyScope, type Scope } from '../domain/scope.ts';
import type { ApiKey, IssuedApiKey } from '../postgres/stores/api-keys.ts';
import type { Terminal } from './terminal.ts';

/** `ingest,read` */
export function parseScopes(text: string): Scope[] {
  return text.split(',').map((part) => {
    const found = everyScope.find((scope) => scope === part.trim());
    if (found === undefined) throw new InvalidArgumentError(`scopes are ${everyScope.join(', ')}.`);
    return found;
  });
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** From now: `30m`, `12h`, `90d`; or a date such as 2027-01-31, which ends at midnight UTC. */
export function parseExpiry(text: string): Date {
  const match = /^(\d{1,6})([mhd])$/.exec(text);
  if (match !== null)
    return new Date(Date.now() + Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]);
  const date = new Date(text);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new InvalidArgumentError('write a time from now such as 90d or 12h, or a date such as 2027-01-31.');
}

export function renderKey({ keyId, label, scopes, createdAt, expiresAt, revokedAt }: ApiKey) {
  return {
    key_id: keyId,
    label,
    scopes,
    status: statusOf({ expiresAt, revokedAt }),
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
    revoked_at: revokedAt?.toISOString() ?? null,
  };
}

export function statusOf({ expiresAt, revokedAt }: Pick<ApiKey, 'expiresAt' | 'revokedAt'>): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}

/** The only time that the key itself is shown. The key alone is on standard output, so that `$(…)` can take it. */
export function printIssued(terminal: Terminal, issued: IssuedApiKey, json: boolean): void {
  if (json) {
    terminal.json({ ...renderKey(issued), key: issued.key });
    return;
  }
  terminal.note(`Key ${issued.keyId} (${issued.label}), shown only this once:`);
  terminal.print(issued.key);
}
