import type { Static } from 'typebox';
import { defineRecord, orNull, text, url } from '../../http/schema.ts';

export const providerRecord = defineRecord('SignInProvider', 'The provider with which people sign in.', {
  provider: orNull(
    text('Host of the provider. Null if sign-in by OpenID Connect is off.', 'login.example.com'),
  ),
});
export type Provider = Static<typeof providerRecord.schema>;

export const signInStep = defineRecord('SignInStep', 'Where the browser goes next.', {
  url: orNull(url('Address at the provider. Null if there is none.', 'https://login.example.com/auth')),
  problem: orNull(
    text('Why the sign-in cannot begin. Null if nothing is wrong.', 'The provider does not answer.'),
  ),
});
export type SignInStep = Static<typeof signInStep.schema>;
