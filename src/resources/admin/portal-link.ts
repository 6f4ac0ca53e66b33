/** A portal link: an address that signs a subscriber into the endpoints of one owner alone. */
import { id, instant, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const portalLink = resource('PortalLink', {
  id: id('key', 'Of the key in the link; to revoke it ends the link and its sessions'),
  owner: text('Whose endpoints it shows'),
  url: text('A browser that opens it is signed in until it expires; only in this response'),
  expires_at: instant(),
});
