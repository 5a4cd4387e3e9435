import { Type } from 'typebox';
import { readInstant } from '../../domain/instant.ts';
import { MAX_OVERLAP_DAYS } from '../../domain/limits.ts';
import { choice, flag, objectOf, text, wholeNumber, withDefault } from '../../operator-file/schema.ts';
import { namedVariables } from './source.ts';

/** The schemas of pulls: how a schedule names a project of another product, whose export API `pull.ts` asks. */

/** Members of every source that is reached over HTTP. */
export const reach = {
  allow_http: withDefault(flag('Unencrypted http:// too.'), false),
  allow_private: withDefault(
    flag(
      'Addresses of private networks and of this machine too; SCHEDULES_ALLOW_PRIVATE must allow it as well.',
    ),
    false,
  ),
};

/** The hosts of the export APIs, by the region in which a project is kept. */
export const productHosts = {
  mixpanel: { us: 'data.mixpanel.com', eu: 'data-eu.mixpanel.com', in: 'data-in.mixpanel.com' },
  amplitude: { us: 'amplitude.com', eu: 'analytics.eu.amplitude.com' },
  posthog: { us: 'us.posthog.com', eu: 'eu.posthog.com' },
} as const;

export type Product = keyof typeof productHosts;
export const products = Object.keys(productHosts) as readonly Product[];

/** A key never stands in the file; the complaint does not repeat what does. */
const secret = (description: string) =>
  text({
    maxChars: 200,
    description: `${description}, as \${env:SCHEDULE_…}.`,
    problem: (value) =>
      namedVariables(value).some((name) => value === `\${env:${name}}`)
        ? null
        : 'must be ${env:SCHEDULE_…}, so that no key stands in the file',
  });

const projectId = text({
  maxChars: 20,
  pattern: ['^[0-9]+$', 'must be the number of a project, in quotes'],
  description: 'Number of the project.',
});

function shared(product: Product, overlapDays: number) {
  return {
    from: text({
      maxChars: 10,
      description: 'First day to load, such as 2025-01-01.',
      problem: (value) =>
        /^20\d\d-/.test(value) && readInstant(value) !== null ? null : 'must be a day such as 2025-01-01',
    }),
    overlap_days: withDefault(
      wholeNumber('Days after which a day is final; until then it is fetched again.', 0, MAX_OVERLAP_DAYS),
      overlapDays,
    ),
    region: withDefault(choice(Object.keys(productHosts[product]), 'Where the project is kept.'), 'us'),
    host: Type.Optional(
      text({
        maxChars: 300,
        pattern: ['^https?://[^@/?#\\s]+$', 'must be https:// and a host'],
        description: 'Instead of region: https:// and a host, such as that of your own PostHog.',
      }),
    ),
    ...reach,
  };
}

export const pulls = {
  mixpanel: objectOf(
    'mixpanel',
    'The events of a Mixpanel project, day by day in the time zone of the schedule.',
    {
      // Mobile SDKs may send what they kept up to five days later.
      ...shared('mixpanel', 5),
      project_id: Type.Optional(projectId),
      user: Type.Optional(
        secret('User name of a service account; without it, secret is that of the project'),
      ),
      secret: secret('Secret of the service account, or of the project'),
    },
  ),
  amplitude: objectOf('amplitude', 'The events of an Amplitude project, by the day of their upload in UTC.', {
    // Late events are uploaded late, so they belong to a later day.
    ...shared('amplitude', 0),
    api_key: secret('API key'),
    secret_key: secret('Secret key'),
  }),
  posthog: objectOf('posthog', 'The events of a PostHog project, day by day in UTC.', {
    ...shared('posthog', 3),
    project_id: projectId,
    api_key: secret('Personal API key with the scope query:read'),
  }),
} as const;
