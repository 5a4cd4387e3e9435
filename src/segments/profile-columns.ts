export type ProfileColumn =
  | { readonly type: 'id'; readonly column: 'user_id' | 'company_id' }
  | { readonly type: 'instant'; readonly column: 'first_seen_at' | 'last_seen_at' };

const userId = { type: 'id', column: 'user_id' } as const;
const companyId = { type: 'id', column: 'company_id' } as const;
const firstSeenAt = { type: 'instant', column: 'first_seen_at' } as const;
const lastSeenAt = { type: 'instant', column: 'last_seen_at' } as const;

/**
 * Names that mean a column of the profile, whatever its metadata holds under them. The lookups list them the same way:
 * there is one property `first_seen_at`, the automatic one.
 */
const columns: Readonly<Record<'property' | 'company_property', ReadonlyMap<string, ProfileColumn>>> = {
  property: new Map<string, ProfileColumn>([
    ['user_id', userId],
    ['company_id', companyId],
    ['first_seen_at', firstSeenAt],
    ['last_seen_at', lastSeenAt],
  ]),
  company_property: new Map<string, ProfileColumn>([
    ['company_id', companyId],
    ['first_seen_at', firstSeenAt],
    ['last_seen_at', lastSeenAt],
  ]),
};

/** null: a property of the metadata. */
export function profileColumn(kind: 'property' | 'company_property', property: string): ProfileColumn | null {
  return columns[kind].get(property) ?? null;
}
