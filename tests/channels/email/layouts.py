"""Headers as the mailboxes of well-known servers have them: what stands above what. Behind each comes `MAIL`."""

MAIL = """\
From: Ann <ann@good.test>
To: bot@bots.test
Subject: Hello
"""

POSTFIX = """\
Return-Path: <ann@good.test>
X-Original-To: bot@bots.test
Delivered-To: bot@bots.test
Authentication-Results: mx.bots.test; dmarc=pass (p=none dis=none) header.from=good.test
Authentication-Results: mx.bots.test; spf=pass smtp.mailfrom=good.test
DKIM-Filter: OpenDKIM Filter v2.11.0 mx.bots.test 81A272164F3
Authentication-Results: mx.bots.test;
\tdkim=pass (2048-bit key; unprotected) header.d=good.test header.i=@good.test header.a=rsa-sha256 header.s=s1
\theader.b="aB/c+D=="; dkim-atps=neutral
Received: from mail.good.test (mail.good.test [203.0.113.9])
\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)
\t key-exchange X25519 server-signature RSA-PSS (2048 bits) server-digest SHA256)
\t(No client certificate requested)
\tby mx.bots.test (Postfix) with ESMTPS id 81A272164F3
\tfor <bot@bots.test>; Mon, 30 Nov 2026 13:52:04 +0000 (UTC)
"""
"""As seen: OpenDKIM and OpenDMARC as filters of Postfix, which delivers by itself."""

DOVECOT = """\
Return-Path: <ann@good.test>
Delivered-To: bot@bots.test
Received: from mx.bots.test
\tby imap.bots.test with LMTP
\tid 4F3kBq3DaWYtAwAAjH7Y1g
\t(envelope-from <ann@good.test>)
\tfor <bot@bots.test>; Mon, 30 Nov 2026 13:52:05 +0000
""" + POSTFIX.split("\n", 3)[3]
"""The same, kept by Dovecot."""

GMAIL = """\
Delivered-To: bot@gmail.com
Received: by 2002:a05:6f02:c70c:b0:84:6fb:3c8a with SMTP id m12csp2318477rcp;
        Mon, 30 Nov 2026 05:52:06 -0800 (PST)
X-Received: by 2002:a05:600c:3548:b0:434:a746:9c82 with SMTP id 5b1f17b1804b1-434a9dd4fb8mr98123475e9.20;
        Mon, 30 Nov 2026 05:52:06 -0800 (PST)
ARC-Seal: i=1; a=rsa-sha256; t=1796046726; cv=none; d=google.com; s=arc-20240605; b=a+/b==
ARC-Message-Signature: i=1; a=rsa-sha256; c=relaxed/relaxed; d=google.com; s=arc-20240605; h=from; bh=a=; b=b=
ARC-Authentication-Results: i=1; mx.google.com;
       dkim=pass header.i=@good.test header.s=s1 header.b=PZ4rV1xS;
       spf=pass (google.com: domain of ann@good.test designates 203.0.113.9 as permitted sender)
       smtp.mailfrom=ann@good.test;
       dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=good.test
Return-Path: <ann@good.test>
Received: from mail.good.test (mail.good.test. [203.0.113.9])
        by mx.google.com with ESMTPS id 5b1f17b1804b1-434b0f41c2esi41862765e9.98.2026.11.30.05.52.06
        for <bot@gmail.com>
        (version=TLS1_3 cipher=TLS_AES_256_GCM_SHA384 bits=256/256);
        Mon, 30 Nov 2026 05:52:06 -0800 (PST)
Received-SPF: pass (google.com: domain of ann@good.test designates 203.0.113.9 as permitted sender)
        client-ip=203.0.113.9;
Authentication-Results: mx.google.com;
       dkim=pass header.i=@good.test header.s=s1 header.b=PZ4rV1xS;
       spf=pass (google.com: domain of ann@good.test designates 203.0.113.9 as permitted sender)
       smtp.mailfrom=ann@good.test;
       dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=good.test
"""

FASTMAIL = """\
Return-Path: <ann@good.test>
Received: from compute5.internal (compute5.nyi.internal [10.202.2.45])
\t by sloti22d1t06 (Cyrus 3.11.0-alpha0-1108-g3a29173c6d-fm-20261031.001) with LMTPA;
\t Mon, 30 Nov 2026 08:52:06 -0500
X-Cyrus-Session-Id: sloti22d1t06-1796046726-1-2
Received: from mx2 ([10.202.2.201])
  by compute5.internal (MEProxy); Mon, 30 Nov 2026 08:52:06 -0500
Received: from mx2.messagingengine.com (localhost [127.0.0.1])
\tby mailmx.nyi.internal (Postfix) with ESMTP id 1A2B3C;
\tMon, 30 Nov 2026 08:52:05 -0500 (EST)
ARC-Authentication-Results: i=1; mx2.messagingengine.com;
    x-csa=none;
    x-me-sender=none;
    x-ptr=pass smtp.helo=mail.good.test policy.ptr=mail.good.test;
    bimi=none (No BIMI records found);
    arc=none (no signatures found);
    dkim=pass (2048-bit rsa key sha256) header.d=good.test header.i=@good.test
    header.b=aB3/x+1= header.a=rsa-sha256 header.s=s1 x-bits=2048;
    dmarc=pass policy.published-domain-policy=none policy.applied-disposition=none
    policy.evaluated-disposition=none (p=none,d=none,d.eval=none) policy.policy-from=p header.from=good.test;
    iprev=pass smtp.remote-ip=203.0.113.9 (mail.good.test);
    spf=pass smtp.mailfrom=ann@good.test smtp.helo=mail.good.test
Received: from mail.good.test (mail.good.test [203.0.113.9])
\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits))
\t(No client certificate requested)
\tby mx2.messagingengine.com (Postfix) with ESMTPS id 9A8B7C
\tfor <bot@fastmail.com>; Mon, 30 Nov 2026 08:52:05 -0500 (EST)
"""

EXCHANGE = """\
Received: from AM0PR04MB1234.eurprd04.prod.outlook.com (2603:10a6:208:aa::15)
 by DB8PR04MB5678.eurprd04.prod.outlook.com with HTTPS; Mon, 30 Nov 2026 13:52:08 +0000
Received: from AM6P193CA0001.EURP193.PROD.OUTLOOK.COM (2603:10a6:209:3e::14)
 by AM0PR04MB1234.eurprd04.prod.outlook.com (2603:10a6:208:aa::15) with
 Microsoft SMTP Server (version=TLS1_3, cipher=TLS_AES_256_GCM_SHA384) id
 15.20.8200.1; Mon, 30 Nov 2026 13:52:07 +0000
Authentication-Results: spf=pass (sender IP is 203.0.113.9)
 smtp.mailfrom=good.test; dkim=pass (signature was verified)
 header.d=good.test;dmarc=pass action=none header.from=good.test;compauth=pass reason=100
Received-SPF: Pass (protection.outlook.com: domain of good.test designates 203.0.113.9 as permitted sender)
Received: from mail.good.test (203.0.113.9) by
 AM7EUR06FT034.mail.protection.outlook.com (10.233.255.61) with Microsoft SMTP
 Server id 15.20.8200.1 via Frontend Transport; Mon, 30 Nov 2026 13:52:06 +0000
"""

YAHOO = """\
X-Apparently-To: bot@yahoo.com; Mon, 30 Nov 2026 13:52:07 +0000
Return-Path: <ann@good.test>
Authentication-Results: atlas210.free.mail.bf1.yahoo.com;
 dkim=pass header.i=@good.test header.s=s1;
 spf=pass smtp.mailfrom=good.test;
 dmarc=pass(p=REJECT) header.from=good.test;
Received-SPF: pass (domain of good.test designates 203.0.113.9 as permitted sender)
Received: from 203.0.113.9 (EHLO mail.good.test)
 by 10.253.31.12 with SMTPs
 (version=TLS1_3 cipher=TLS_AES_128_GCM_SHA256);
 Mon, 30 Nov 2026 13:52:06 +0000
"""

ICLOUD = """\
Received: from p00-icloudmta-asmtp-us-east-1a-60-percent-1 by p99-mailgateway-smtp-0 (mailgateway 2626B)
\twith SMTP id 3f7c1a6e-5d1a-4e4a-9a1b-1c7d0b4f5a10
\tfor <bot@icloud.com>; Mon, 30 Nov 2026 13:52:07 GMT
Authentication-Results: dmarc.icloud.com; dmarc=pass header.from=good.test
Authentication-Results: dkim-verifier.icloud.com;
\tdkim=pass (2048-bit key) header.d=good.test header.i=@good.test header.b=Xy1/z+
"""

EXIM = """\
Return-path: <ann@good.test>
Envelope-to: bot@bots.test
Authentication-Results: mx.bots.test;
\tspf=pass smtp.mailfrom=good.test;
\tdkim=pass header.d=good.test header.s=s1 header.a=rsa-sha256;
\tdmarc=pass header.from=good.test
Received: from mail.good.test ([203.0.113.9])
\tby mx.bots.test with esmtps  (TLS1.3) tls TLS_AES_256_GCM_SHA384
\t(Exim 4.96)
\t(envelope-from <ann@good.test>)
\tid 1tHqXy-0001Ab-2C
\tfor bot@bots.test;
\tMon, 30 Nov 2026 13:52:06 +0000
"""

FETCHED = """\
Received: from pop.other.test [198.51.100.4]
\tby desk.bots.test with POP3 (fetchmail-6.4.37)
\tfor <bot@localhost> (single-drop); Mon, 30 Nov 2026 13:53:00 +0000 (UTC)
Authentication-Results: mx.other.test; dmarc=pass header.from=good.test
"""

SUBMITTED = """\
Return-Path: <ann@bots.test>
Delivered-To: bot@bots.test
Received: from mx.bots.test
\tby imap.bots.test with LMTP id x (envelope-from <ann@bots.test>) for <bot@bots.test>;
\tMon, 30 Nov 2026 13:52:05 +0000
Received: from [192.168.1.5] (unknown [192.168.1.5])
\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits))
\tACCOUNTby mx.bots.test (Postfix) with ESMTPSA id 12AB
\tfor <bot@bots.test>; Mon, 30 Nov 2026 13:52:04 +0000 (UTC)
DKIM-Signature: v=1; a=rsa-sha256; d=bots.test; s=s1; h=from; bh=a=; b=b=
From: ann@bots.test
To: bot@bots.test
"""
"""Handed in by an account of the same server; `ACCOUNT` is what the server tells of it, in brackets, or nothing."""
