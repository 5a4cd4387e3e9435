import { choice, listOf, objectOf, text, withDefault } from '../../base/operator-file/schema.ts';
import { type Scope, scopes } from '../../domain/caller.ts';
import type { DefinitionList } from '../../lookups/seam.ts';
import { accessGrants, type Grant } from './store.ts';

const MAX_GRANTS = 1_000;
const maxKeyChars = 100;
const maxClaimChars = 200;

const grant = objectOf('a grant', 'Scopes that people with a claim have in this environment.', {
  key: text({ maxChars: maxKeyChars, description: 'What this file calls the grant.' }),
  claim: withDefault(
    text({
      maxChars: maxClaimChars,
      description: 'The claim of the provider; a dot leads into an object: `realm_access.roles`.',
    }),
    'groups',
  ),
  value: text({
    maxChars: maxClaimChars,
    description: 'The value that the claim must have, or contain if it is a list.',
  }),
  scopes: listOf(choice(scopes, 'What these people may do.'), 'What these people may do.', scopes.length),
});

export const access: DefinitionList = {
  name: 'access',
  schema: withDefault(
    listOf(grant, 'Who may do what in this environment, after sign-in by OpenID Connect.', MAX_GRANTS),
    [],
  ),
  // Grants must not be imported from another environment. They would give people access.
  isLocal: true,
  check(list) {
    for (const item of list.items) {
      const place = item.at(['scopes']);
      const { value } = place;
      if (!Array.isArray(value)) continue;
      if (value.length === 0) place.report(`must have at least one of ${scopes.join(', ')}`);
      if (new Set(value).size < value.length) place.report('names a scope twice');
    }
  },
  table: accessGrants,
};

export type Claims = Readonly<Record<string, unknown>>;

export function scopesOf(grants: readonly Grant[], claims: Claims): Scope[] {
  const matching = grants.filter(({ claim, value }) => valuesOf(claims, claim).includes(value));
  return scopes.filter((scope) => matching.some((each) => each.scopes.includes(scope)));
}

/** Personal claims. Even the values configured for them must not be logged. */
const personal: ReadonlySet<string> = new Set(
  'sub email name given_name family_name nickname preferred_username upn phone_number'.split(' '),
);
const MAX_LOGGED = 50;

/**
 * Returns, for the log, the names of the person's claims and the claims that the grants require.
 * Required values are included only if they are not personal.
 */
export function describeMismatch(grants: readonly Grant[], claims: Claims) {
  const wanted = grants.map(({ claim, value }) => (personal.has(claim) ? claim : `${claim}=${value}`));
  return {
    claims: Object.keys(claims)
      .toSorted()
      .slice(0, MAX_LOGGED)
      .map((name) => name.slice(0, maxClaimChars)),
    access: [...new Set(wanted)].slice(0, MAX_LOGGED),
  };
}

/** An unverified email address proves nothing about its owner. */
function valuesOf(claims: Claims, claim: string): readonly string[] {
  if (claim === 'email' && claims['email_verified'] !== true) return [];
  const value = memberOf(claims, claim) ?? claim.split('.').reduce<unknown>(memberOf, claims);
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.filter(isPlain).map(String);
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as Claims)[name] : undefined;
}

function isPlain(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}
