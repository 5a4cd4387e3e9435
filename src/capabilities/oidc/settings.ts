import type { Config } from '../../base/config.ts';

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scope: string;
  readonly publicUrl: string;
}

type Settings = Pick<Config, 'oidcIssuer' | 'oidcClientId' | 'oidcClientSecret' | 'oidcScopes' | 'publicUrl'>;

/** Returns `null` if OpenID Connect is off, or if its settings are incomplete. */
export function readSettings(config: Settings): OidcSettings | null {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, publicUrl } = config;
  if (issuer === null || clientId === null || clientSecret === '' || publicUrl === null) return null;
  return { issuer, clientId, clientSecret, scope: config.oidcScopes, publicUrl };
}

/** Returns a problem of the settings, or `null` if the settings work together. */
export function settingsProblem(config: Settings): string | null {
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcScopes, publicUrl } = config;
  const names = {
    OIDC_ISSUER: oidcIssuer,
    OIDC_CLIENT_ID: oidcClientId,
    OIDC_CLIENT_SECRET: oidcClientSecret,
  };
  const missing = Object.entries(names).flatMap(([name, value]) => ((value ?? '') === '' ? [name] : []));
  if (missing.length === Object.keys(names).length) return null;
  if (missing.length > 0)
    return `${missing.join(' and ')}: missing. Sign-in by OpenID Connect needs all three.`;
  if (publicUrl === null)
    return 'PUBLIC_URL: missing. The provider sends browsers back to it, so OIDC_ISSUER needs it.';
  if (!isProtected(oidcIssuer ?? '')) return 'OIDC_ISSUER: must begin with https://, except on this machine.';
  if (!oidcScopes.split(' ').includes('openid')) return 'OIDC_SCOPES: must contain openid.';
  return null;
}

/**
 * True for an encrypted or local URL. On the way to any other URL, others could read the client
 * secret.
 */
export function isProtected(issuer: string): boolean {
  return new URL(issuer).protocol === 'https:' || isLoopback(issuer);
}

export function isLoopback(issuer: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(new URL(issuer).hostname);
}
