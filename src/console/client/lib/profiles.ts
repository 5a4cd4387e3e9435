import { screenHref } from './address.ts';

export type Entity = 'users' | 'companies';

export interface Who {
  readonly entity: Entity;
  readonly id: string;
}

export const words = {
  users: {
    one: 'user',
    title: 'Users',
    screen: '/people',
    properties: '/api/v1/analytics/exports/lookups/user_properties',
  },
  companies: {
    one: 'company',
    title: 'Companies',
    screen: '/companies',
    properties: '/api/v1/analytics/exports/lookups/company_properties',
  },
} as const;

export function profileHref(entity: Entity, id: string): string {
  return screenHref(`${words[entity].screen}/${encodeURIComponent(id)}`);
}
