"""What mail clients write around an older mail and below a new one, in their languages.

English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Swedish, Danish, Norwegian, Finnish, Czech,
Russian, Ukrainian, Turkish, Chinese in both scripts, Japanese and Korean, and some of Hungarian, Greek and Romanian.
All are in folded case.
"""

from __future__ import annotations


def _phrases(table: str) -> tuple[str, ...]:
    """The phrases of a table: `|` stands between them, and a line's end."""
    return tuple(
        phrase for line in table.splitlines() for part in line.split("|") if (phrase := part.strip().casefold())
    )


ORIGINAL = frozenset(
    _phrases("""
    Original Message | 邮件原件 | Original Email | Original Mail | Reply message | Ursprüngliche Nachricht
    Ursprüngliche E-Mail | Originalnachricht | Original-Nachricht | Original Nachricht | Originalmeddelelse
    Message d'origine | Message d’origine | Message original | Message initial | Courriel original
    E-mail d'origine | Mensaje original | Correo original | Messaggio originale | Mensagem original
    Oorspronkelijk bericht | Origineel bericht | Wiadomość oryginalna | Oryginalna wiadomość | Wiadomość pierwotna
    Ursprungligt meddelande | Originalmeddelande | Oprindelig meddelelse | Oprindelig besked | Opprinnelig melding
    Original melding | Alkuperäinen viesti | Původní zpráva | Původní e-mail | Исходное сообщение
    Оригинальное сообщение | Первоначальное сообщение | Вихідне повідомлення | Оригінальне повідомлення
    Orijinal Mesaj | Orijinal ileti | Özgün İleti | 原始邮件 | 原始消息 | 原邮件 | 原始郵件 | 原始訊息
    元のメッセージ | オリジナルメッセージ | 원본 메일
    원본 메시지 | 원본 이메일 | Eredeti üzenet | Mesaj original | Αρχικό μήνυμα
    """)
)
"""Between dashes: the mail that is answered follows."""

FORWARDED = frozenset(
    _phrases("""
    Forwarded message | Forwarded Mail | Forwarded email | Begin forwarded message | Weitergeleitete Nachricht
    Weitergeleitete Mail | Weitergeleitete E-Mail | Anfang der weitergeleiteten Nachricht
    Anfang der weitergeleiteten E-Mail | Message transféré | Message transmis | Courriel transféré
    Début du message transféré | Début du message réexpédié | Mensaje reenviado | Inicio del mensaje reenviado
    Messaggio inoltrato | Inizio messaggio inoltrato | Mensagem encaminhada | Mensagem reencaminhada
    Início da mensagem encaminhada | Início da mensagem reencaminhada | Doorgestuurd bericht
    Begin doorgestuurd bericht | Wiadomość przekazana dalej | Przekazana wiadomość | Treść przekazanej wiadomości
    Początek przekazywanej wiadomości | Vidarebefordrat meddelande | Vidarebefordrat brev | Vidarebefordrat mejl
    Videresendt besked | Videresendt meddelelse | Start på videresendt besked | Videresendt melding
    Videresendt e-post | Start på videresendt melding | Välitetty viesti | Edelleenlähetetty viesti
    Välitetty viesti alkaa | Přeposlaná zpráva | Začátek přeposílané zprávy | Пересылаемое сообщение
    Перенаправленное сообщение | Пересланное сообщение | Начало переадресованного сообщения
    Начало пересылаемого сообщения | Переслане повідомлення | Перенаправлене повідомлення
    Початок пересланого повідомлення | Пересилання повідомлення | Yönlendirilen Mesaj | Yönlendirilmiş ileti
    İletilen mesaj | İletilmiş ileti | Yönlendirilmiş ileti başlangıcı | İletilen e-posta başlangıcı
    转发的消息 | 转发邮件
    转发信息 | 转发邮件信息 | 已转发邮件 | 被转发的邮件 | 以下是转发的邮件 | 轉寄的郵件 | 轉寄郵件 | 已轉寄郵件
    以下是轉寄的郵件 | 開始轉寄郵件 | 转发的邮件 | 開始轉發郵件 | 転送メッセージ
    転送されたメッセージ | 転送されたメール | 전달된 메시지 | 전달된 메일 | 전달한 메시지 | 전달된 메시지의 시작
    """)
)
"""Between dashes or before a colon: a mail that is passed on follows."""

WROTE = _phrases("""
    wrote | writes | schrieb | geschrieben | schreibt | a écrit | écrit : | écrivait | a écrit : | escribió
    escribio | ha escrito | ha scritto | scrisse | scriveva | escreveu | schreef | geschreven | napisał | napisała
    pisze | skrev | skrifaði | kirjoitti | napsal | napísal | написал | написала | пишет | писал | написав | пише
    yazdı | şunları yazdı | 写道 | 寫道 | のメール | さんは書きました | 님이 작성 | 작성: | 작성 :
    작성했습니다 | 님의 말 | 쓴 글 | έγραψε | írta
    a scris | escrigué | va escriure
""")
"""How "wrote" is told in the line above a quote."""

OPENINGS = _phrases("""
    On | Am | Le | El | Il | Em | No dia | A | Op | W dniu | Dnia | Den | På | Dne | В | У | Tarih | At | ma | ti
    ke | to | pe | la | su | pon | wt | śr | czw | pt | sob | niedz | po | út | st | čt | pá | so | ne | пн | вт
    ср | чт | пт | сб | вс | нд | lör | sön | mån | tis | ons | tors | fre | man | tir | tor | lør | søn | Mon | Tue
    Wed | Thu | Fri | Sat | Sun | Mo | Di | Mi | Do | Fr | Sa
""")
"""What that line may begin with, if it is broken right after: "On", and days of the week."""

FROM = _phrases("""
    From | Von | De | Da | Van | Od | Från | Fra | Lähettäjä | От | От кого | Від | Від кого | Kimden | Gönderen
    发件人 | 寄件人 | 寄件者 | 發件人 | 差出人 | 送信者 | 보낸 사람 | 보낸사람 | 발신 | Expéditeur | Remitente
    Mittente | Remetente | Nadawca
    Avsändare | Odesílatel | Відправник | Отправитель | Afsender | Avsender | Absender | Feladó | Από | De la
""")
DATE = _phrases("""
    Sent | Date | Gesendet | Datum | Envoyé | Envoyé le | Date d'envoi | Enviado | Enviado el | Enviada em
    Enviado em | Enviada | Fecha | Data | Inviato | Data invio | Verzonden | Wysłano | Wysłane | Skickat | Skickades
    Dato | Sendt | Dato sendt | Lähetetty | Päivämäärä | Päiväys | Pvm | Odesláno | Дата | Отправлено | Надіслано
    Tarih | Gönderildi | Gönderilme tarihi | Gönderme tarihi | 发送时间 | 日期 | 时间 | 發送時間 | 傳送時間
    寄件日期 | 传送时间 | 送信日時
    日時 | 日付 | 보낸 날짜 | 보낸날짜 | 날짜 | 보낸 시간 | Received | Empfangen | Dátum | Elküldve | Ημερομηνία
    Trimis
""")
TO = _phrases("""
    To | An | À | A | Pour | Para | Aan | Do | Till | Til | Vastaanottaja | Komu | Кому | Kime | Alıcı | 收件人
    收件者
    宛先 | 받는 사람 | 받는사람 | 수신 | Destinataire | Destinatario | Destinatário | Empfänger | Címzett | Προς
    Către
""")
SUBJECT = _phrases("""
    Subject | Betreff | Objet | Asunto | Oggetto | Assunto | Onderwerp | Temat | Ämne | Emne | Aihe | Předmět | Тема
    Konu | 主题 | 主題 | 主旨 | 标题 | 標題 | 件名 | 제목 | Sujet | Tárgy | Θέμα | Subiect
""")
OTHER = _phrases("""
    Cc | Cc. | Kopie | Kopia | Kopi | Kopio | Copie | Copia | Cópia | Bcc | Cco | Копия | Копія | Bilgi | 抄送
    副本
    密送 | 참조 | Reply-To | Antwort an | Répondre à | Responder a | Rispondi a | 回复 | Importance | Wichtigkeit
    Priority | Priorität | Attachments | Anlagen | Pièces jointes | Adjuntos | Allegati | 附件 | Organization
    Organisation | DW
""")
"""These five: the fields that stand above an older mail, before their colon."""

TAGLINE_OPENINGS = _phrases("""
    sent from | sent via | sent with | sent using | sent on | get outlook for | download outlook for | von meinem
    von meiner | gesendet von | gesendet mit | gesendet über | gesendet aus | diese nachricht wurde
    holen sie sich outlook | outlook für | laden sie outlook | envoyé de | envoyé d’ | envoyé d' | envoyé depuis
    envoyé à partir | envoyé avec | envoyé par | obtenez outlook | télécharger outlook | obtenir outlook
    provenance : courrier | enviado desde | enviado de | enviado do | enviado da | enviado a partir | enviado con
    enviado com | enviado por | obtener outlook | obtenga outlook | obter o outlook | obtenha o outlook
    baixe o outlook | inviato da | inviato dal | inviato dall | inviato con | inviato tramite | ottieni outlook
    scarica outlook | verstuurd vanaf | verstuurd met | verzonden vanaf | verzonden met | verzonden via
    verzonden van | download outlook voor | outlook voor | wysłane z | wysłano z | wysłano ze | wysłane ze
    pobierz outlook | uzyskaj outlook | skickat från | skickades från | skickat med | hämta outlook | sendt fra
    sendt via | sendt med | hent outlook | få outlook | lähetetty | hanki outlook | odesláno z | odesláno ze
    odesláno pomocí | získejte outlook | отправлено с | отправлено из | отправлено от | скачать outlook
    получить outlook | надіслано з | надіслано із | відправлено з | отримати outlook | 发自 | 發自 | 从我的
    從我的 | 来自我的
    傳自 | 寄自 | 通过我的 | iphoneから | ipadから | outlook for | gönderen: iphone | 나의 | 내  | iphone'umdan
    ipad'imden
""")
"""What a line begins with by which a device or a program tells of itself."""

TAGLINE_ENDINGS = _phrases("""
    から送信 | から送信されました | gönderildi | 에서 보냄 | 에서 전송됨 | 发送 | 發送 | 傳送 | 寄出 | gesendet
    gesendet.
""")
"""What it ends with, where that says it."""

DEVICES = _phrases("""
    iphon | ipad | ipod | mac | apple | android | samsung | galaxy | huawei | honor | xiaomi | redmi | oppo | vivo
    oneplus | pixel | nokia | xperia | motorola | blackberry | windows | outlook | mail | gmail | gmx | web.de
    yahoo | aol | proton | tutanota | thunderbird | spark | phone | handy | mobil | móvil | telefon | teléfono
    téléphone | telefono | cellulare | telemóvel | celular | tablet | portable | puhelin | телефон | мобильн
    мобільн | почт | пошт | 手机 | 手機 | 携帯 | 스마트폰 | 휴대 | 邮箱 | 郵箱 | 电脑 | 邮件 | watch
""")
"""What such a line names: devices and programs, in part only where words are inflected."""
