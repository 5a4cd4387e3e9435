import { allOrNothing } from './capabilities/all-or-nothing/all-or-nothing.ts';
import { audit } from './capabilities/audit/audit.ts';
import { configuration } from './capabilities/configuration/configuration.ts';
import { inbox } from './capabilities/inbox/inbox.ts';
import { inspection } from './capabilities/inspection/inspection.ts';
import { lake } from './capabilities/lake/lake.ts';
import { mirror } from './capabilities/mirror/mirror.ts';
import { notifications } from './capabilities/notifications/notifications.ts';
import { oidc } from './capabilities/oidc/oidc.ts';
import { personal } from './capabilities/personal/personal.ts';
import { products } from './capabilities/products/products.ts';
import { rules } from './capabilities/rules/rules.ts';
import { schedules } from './capabilities/schedules/schedules.ts';
import { suppression } from './capabilities/suppression/suppression.ts';
import { undo } from './capabilities/undo/undo.ts';
import { where } from './capabilities/where/where.ts';
import type { Capability } from './capability.ts';

/** The capabilities of this build, in the order of their hooks, routes and commands. */
export const capabilities: readonly Capability[] = [
  products,
  personal,
  rules,
  inspection,
  undo,
  allOrNothing,
  suppression,
  mirror,
  notifications,
  schedules,
  inbox,
  lake,
  audit,
  oidc,
  configuration,
  where,
];
