/**
 * Messages about failed sign-ins, by the code in the page's address. They contain nothing from the
 * provider's answer.
 */
export const problems = {
  expired: 'The sign-in took longer than 10 minutes, or began in another browser. Sign in again.',
  replayed: 'This answer of the provider was used already. Sign in again.',
  state: 'This answer of the provider belongs to another sign-in. Sign in again.',
  denied: 'The provider did not sign you in. Sign in again, or ask its operator.',
  issuer: 'The provider is not the one that OIDC_ISSUER names. Ask the operator of sluice to correct it.',
  clock:
    'The clocks of the provider and of this machine differ by minutes. Ask the operator of sluice to set the clock.',
  away: 'The provider does not answer. Try again later, or sign in with a key.',
  client:
    'The provider refused OIDC_CLIENT_ID, OIDC_CLIENT_SECRET or the address of sluice. Ask the operator.',
  token: 'The provider sent a token that is not valid. Ask the operator of sluice, whose log has the reason.',
  access:
    'You are signed in at the provider, but none of your groups has access to sluice. Ask its operator.',
  often: 'Too many sign-ins failed. Try again in a minute.',
} as const;

export type ProblemCode = keyof typeof problems;
