/** How requests to HTTP receivers are authenticated beside headers. */
export const AUTH_KINDS = ['oauth2', 'client_certificate', 'authority'] as const;
export type AuthKind = (typeof AUTH_KINDS)[number];
export const AUTH_WORDS: Readonly<Record<AuthKind, string>> = {
  oauth2: 'OAuth 2',
  client_certificate: 'client certificate',
  authority: 'own authority',
};

/** How a client shows its secret to the token endpoint of OAuth 2. */
export const CLIENT_AUTHENTICATIONS = ['basic', 'body'] as const;

/** Why an attempt got no token of OAuth 2; part of the stable codes. */
export const TOKEN_FAULTS: Readonly<Record<string, string>> = {
  token_refused: 'the token endpoint refused to give a token',
  token_unreachable: 'the token endpoint did not answer',
  token_unreadable: 'the token endpoint gave no bearer token',
};
